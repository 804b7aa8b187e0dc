"""Which attempts a job has had, and which of other jobs ran beside one: by the audit log."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mam_core.audit import AuditEvent
from mam_core.clock import parse_stamp
from mam_core.errors import MamError
from mam_core.records import check_job_id
from mam_core.registry import Registry
from mam_core.stores.base import Query

#: So many jobs are looked through for neighbours, those that changed last.
_MAX_JOBS = 500
#: The clock of the log counts whole seconds.
_GRAIN_SEC = 1.0


class Span(NamedTuple):
    """One attempt from its start to its end."""

    job_id: str
    attempt: int
    workdir: str
    began_at: float
    ended_at: float | None
    start_git: Mapping[str, Any] | None
    end_git: Mapping[str, Any] | None

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None

    def overlaps(self, other: Span) -> bool:
        far = float("inf")
        return (
            self.began_at <= (other.ended_at or far) + _GRAIN_SEC
            and other.began_at <= (self.ended_at or far) + _GRAIN_SEC
        )


def attempts_of(registry: Registry, job_id: str) -> list[Span]:
    """Those that were started, in order; none for a job that is not known."""
    spans: dict[int, Span] = {}
    last = 0.0
    for line in registry.store.audit.events(check_job_id(job_id)):
        attempt, last = line.get("attempt"), _time(line) or last
        if not isinstance(attempt, int):
            continue
        if line.get("event") == AuditEvent.ATTEMPT_STARTED:
            _close_earlier(spans, last)
            workdir = line.get("workdir")
            where = workdir if isinstance(workdir, str) else _workdir(registry, job_id)
            spans[attempt] = Span(job_id, attempt, where, last, None, _git(line), None)
        elif line.get("event") == AuditEvent.ATTEMPT_ENDED and attempt in spans:
            spans[attempt] = spans[attempt]._replace(ended_at=last, end_git=_git(line))
    if not _is_live(registry, job_id):
        _close_earlier(spans, last)
    return list(spans.values())


def neighbours(registry: Registry, span: Span, top: str) -> Iterator[Span]:
    """Attempts of other jobs that ran below `top` at the same time."""
    jobs, _ = registry.store.find(Query())
    started = [job for job in jobs if job.attempt and job.job_id != span.job_id]
    started.sort(key=lambda job: job.updated_at, reverse=True)
    for job in started[:_MAX_JOBS]:
        if not job.status.is_live and _seconds(job.updated_at) + _GRAIN_SEC < span.began_at:
            continue
        for other in attempts_of(registry, job.job_id):
            if other.overlaps(span) and _is_below(other.workdir, top):
                yield other


def _is_below(path: str, top: str) -> bool:
    path = os.path.realpath(path) if path else ""
    return path == top or path.startswith(top.rstrip(os.sep) + os.sep)


def _close_earlier(spans: dict[int, Span], at: float) -> None:
    """One whose worker died has no end of its own; it was over when something else was said."""
    for attempt, span in spans.items():
        if span.ended_at is None:
            spans[attempt] = span._replace(ended_at=at)


def _is_live(registry: Registry, job_id: str) -> bool:
    try:
        return registry.get(job_id).is_live
    except MamError:
        return False


def _workdir(registry: Registry, job_id: str) -> str:
    try:
        return registry.get(job_id).workdir or ""
    except MamError:
        return ""


def _git(line: Mapping[str, Any]) -> Mapping[str, Any] | None:
    git = line.get("git")
    return git if isinstance(git, dict) else None


def _time(line: Mapping[str, Any]) -> float:
    return _seconds(line.get("timestamp"))


def _seconds(stamp: Any) -> float:
    try:
        return parse_stamp(str(stamp))
    except ValueError:
        return 0.0
