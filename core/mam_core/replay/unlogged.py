"""A job without a history: another tool wrote its record, and nothing of ours has touched it yet.

Its record's own moments stand in for the lines that there are not, so that the past shows it too.
"""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite
from typing import Any

from mam_core.audit import AuditEvent
from mam_core.clock import stamp
from mam_core.records import Status
from mam_core.replay.folding import Fold
from mam_core.stores.base import Query, Store
from mam_core.summaries import Summary


def unlogged(store: Store, logged: Collection[str]) -> list[Summary]:
    """The jobs of the registry that are not among those with a history."""
    return [job for job in store.find(Query())[0] if job.job_id not in logged]


def fold_of(job: Summary) -> Fold:
    return Fold(
        {
            "agent": job.agent,
            "agent_session": job.agent_session,
            "group": job.group,
            "priority": job.priority,
            "order": job.order,
            "created_at": job.created_at,
            "prompt": job.head,
            "after": job.parents.split(),
            "timeout_sec": job.timeout_sec,
            "not_before": _start_time(job),
        }
    )


def _start_time(job: Summary) -> str | None:
    """As in its record; an unreadable one stays unreadable."""
    if job.not_before is None:
        return None
    return stamp(job.not_before) if isfinite(job.not_before) else "unreadable"


def lines_of(job: Summary) -> list[dict[str, Any]]:
    """What can be known of its way: registered, perhaps started, and how it is now."""
    lines: list[dict[str, Any]] = [
        {"timestamp": job.created_at, "event": AuditEvent.REGISTERED},
    ]
    ended_at = job.ended_at or job.updated_at
    if job.started_at or job.status is Status.RUNNING:
        lines.append(_moved(job, Status.RUNNING, job.started_at or job.updated_at))
    if job.status is not Status.RUNNING and (job.status is not Status.PENDING or job.started_at):
        lines.append(_moved(job, job.status, ended_at))
    return lines


def _moved(job: Summary, status: Status, at: str) -> dict[str, Any]:
    told = {"timestamp": at, "event": AuditEvent.STATUS_CHANGED, "to": str(status)}
    return {**told, "attempt": job.attempt, "node": job.node, "reason": job.reason}
