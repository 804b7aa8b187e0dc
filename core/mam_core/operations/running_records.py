"""The records of the jobs that run, for whoever looks again and again: unchanged ones are kept.

A list costs one question; a record is a file that is opened and parsed. Its summary
tells when it was changed, to the second: so one that has changed a moment ago is
read again, and an older one only when its summary is another.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from mam_core.clock import parse_stamp
from mam_core.errors import JobNotFound, UnreadableRecord
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.summaries import Summary

_RUNNING = Query(frozenset({Status.RUNNING}))
#: Stamps have whole seconds: after so long a second change would have another one.
_SETTLED_SEC = 2.0


class RunningRecords:
    """For one thread at a time."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[str, tuple[Summary, Job]] = {}

    def all(self) -> list[Job]:
        return self.of(self._registry.store.find(_RUNNING)[0])

    def of(self, jobs: Iterable[Summary]) -> list[Job]:
        """Those of them that run; what is gone or cannot be read is left out."""
        kept: dict[str, tuple[Summary, Job]] = {}
        for summary in jobs:
            if summary.status is not Status.RUNNING:
                continue
            known = self._known.get(summary.job_id)
            if known is None or known[0] != summary or not self._is_settled(summary):
                with suppress(JobNotFound, UnreadableRecord):
                    kept[summary.job_id] = summary, self._registry.get(summary.job_id)
            else:
                kept[summary.job_id] = known
        self._known = kept
        return [job for _, job in kept.values() if job.status is Status.RUNNING]

    def _is_settled(self, summary: Summary) -> bool:
        try:
            return self._registry.clock.now() - parse_stamp(summary.updated_at) > _SETTLED_SEC
        except ValueError:
            return False
