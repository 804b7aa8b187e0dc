"""What a job promised to leave behind, as it stands now: looked at, and nothing is run.

The same look as `completed` is earned by and as `verify` repeats. A job's own check is a
program and may take its time; of that only the last result is told, from the audit log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mam_core.audit import AuditEvent
from mam_core.clock import parse_stamp
from mam_core.operations.files_there import need_its_files
from mam_core.operations.verify import as_it_ran
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.work.validation import Artifact, look_at_artifacts

__all__ = ["Artifact", "Artifacts", "LastCheck", "artifacts"]


class LastCheck(NamedTuple):
    """How the job's own check went when it was last run, for which attempt."""

    at: float | None
    attempt: int
    passed: bool
    words: str
    output: str


class Artifacts(NamedTuple):
    """All that was promised."""

    job: Job  #: with the folder that it ran in
    found: tuple[Artifact, ...]
    last_check: LastCheck | None  #: None: it has none, or it was never run


def artifacts(registry: Registry, job_id: str) -> Artifacts:
    """Raises `JobNotFound`, `UnreadableRecord` and `RanElsewhere`."""
    job = registry.get(job_id)
    need_its_files(registry, job, job.attempt)
    job = as_it_ran(registry, job)
    last = _last_check(registry, job) if job.validate else None
    return Artifacts(job, tuple(look_at_artifacts(job)), last)


def _last_check(registry: Registry, job: Job) -> LastCheck | None:
    last = None
    for line in registry.store.audit.events(job.job_id):
        if line.get("event") in (AuditEvent.ATTEMPT_ENDED, AuditEvent.VERIFIED):
            last = _in_line(line, job.validate) or last
    return last


def _in_line(line: Mapping[str, Any], command: str | None) -> LastCheck | None:
    checks = line.get("checks")
    for check in checks if isinstance(checks, list) else ():
        if isinstance(check, dict) and check.get("what") == command:
            attempt = line.get("attempt")
            return LastCheck(
                _seconds(line.get("timestamp")),
                attempt if isinstance(attempt, int) else 0,
                check.get("passed") is True,
                str(check.get("words") or ""),
                str(check.get("output") or ""),
            )
    return None


def _seconds(stamp: Any) -> float | None:
    try:
        return parse_stamp(str(stamp))
    except ValueError:
        return None
