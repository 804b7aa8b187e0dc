"""What happened: the audit log of one job, and the list of all jobs that have one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from mam_core.audit import status_of
from mam_core.errors import JobNotFound
from mam_core.records import check_job_id
from mam_core.registry import Registry
from mam_core.stores.base import Query


class Logged(NamedTuple):
    """A job that has a history, and where it stands now or stood last."""

    job_id: str
    status: str  #: that of the record; of the audit log when the record is gone
    updated_at: str
    in_registry: bool

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


def history(registry: Registry, job_id: str, tail: int | None = None) -> list[dict[str, Any]]:
    """The events of a job, oldest first; `tail` keeps only the last so many.

    Raises `JobNotFound` for a job that is neither logged nor registered.
    """
    _check_known(registry, job_id)
    return list(deque(registry.store.audit.events(job_id), tail))


def stored_history(registry: Registry, job_id: str, tail: int | None = None) -> list[bytes]:
    """The same as lines of bytes, exactly as they are stored."""
    _check_known(registry, job_id)
    return list(deque(registry.store.audit.lines(job_id), tail))


def logged_jobs(registry: Registry) -> Iterator[Logged]:
    """Every job that ever was logged here, also those whose record is gone."""
    audit = registry.store.audit
    jobs, unreadable = registry.store.find(Query())
    live = {job.job_id: job for job in jobs}
    broken = {job_id for job_id, _ in unreadable}
    for job_id in audit.job_ids():
        if (job := live.get(job_id)) is not None:
            yield Logged(job_id, job.status, job.updated_at, True)
            continue
        last = audit.status(job_id)
        updated_at = str(last.get("updated_at", "")) if last else ""
        if job_id in broken:
            yield Logged(job_id, "unreadable", updated_at, True)
        else:
            yield Logged(job_id, status_of(last) or "unknown", updated_at, False)


def _check_known(registry: Registry, job_id: str) -> None:
    if registry.store.audit.has(check_job_id(job_id)):
        return
    try:
        registry.store.raw(job_id)
    except JobNotFound:
        raise JobNotFound(f"there is no job {job_id}, and none was ever logged") from None
