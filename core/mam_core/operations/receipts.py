"""`received`: the audit log's word that an event reached somebody who listened.

One line for each event that a broker brought, by each watcher under its own
name. What was read from the registry came to nobody, and gets none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from mam_core.audit import AuditEvent
from mam_core.errors import MamError
from mam_core.events.items import EventHeard, Item, Origin
from mam_core.records import Job
from mam_core.redaction import without_secrets
from mam_core.registry import Registry


class Receipts:
    """Writes them, best effort: a log that cannot be written is a warning."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._watcher = f"{registry.node}:{os.getpid()}"

    def write(self, items: Iterable[Item]) -> None:
        by_job: dict[str, list[EventHeard]] = {}
        for item in items:
            if isinstance(item, EventHeard) and item.origin is Origin.BROKER:
                by_job.setdefault(item.event.job_id, []).append(item)
        for job_id, heard in by_job.items():
            job = self._job(job_id)
            lines = [self._line(one, job) for one in heard]
            self._registry.store.audit.append_all(job_id, lines)

    def _line(self, heard: EventHeard, job: Job | None) -> dict[str, Any]:
        event = heard.event
        told: dict[str, Any] = {
            "watcher": self._watcher,
            "attempt": event.attempt,
            "seq": event.seq,
            # A stranger may have sent what our own publisher would have left out.
            "payload": without_secrets(job, heard.content) if job else heard.content,
        }
        return self._registry.note(AuditEvent.RECEIVED, **told).to_dict(event.job_id)

    def _job(self, job_id: str) -> Job | None:
        try:
            return self._registry.get(job_id)
        except MamError:
            return None
