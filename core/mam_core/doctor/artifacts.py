"""What completed jobs have left behind, and whether it is still there."""

from __future__ import annotations

from collections.abc import Iterator

from mam_core.doctor.findings import Area, Finding, many, warning
from mam_core.doctor.ground import Look
from mam_core.operations.verify import as_it_ran
from mam_core.records import Job, Status
from mam_core.stores.base import Query
from mam_core.work.validation import look_at_artifacts

#: So many jobs are named; the others are counted.
_NAMED = 20


def kept(look: Look) -> Iterator[Finding]:
    """Every record of a completed job is read: this is asked by an audit, not by a claim."""
    found = 0
    for job in look.registry.store.bodies(Query(frozenset({Status.COMPLETED}))):
        if not isinstance(job, Job) or not job.expected_artifacts:
            continue
        # Where it ran may be another folder than its own; that is asked only where it matters.
        missing = _missing(job) and _missing(as_it_ran(look.registry, job))
        if missing:
            found += 1
            if found <= _NAMED:
                words = f"completed, and of what it left {', '.join(missing)} is gone"
                yield warning(Area.JOBS, f"job {job.job_id}", words, rule="artifacts")
    if found > _NAMED:
        words = f"{many(found - _NAMED, 'more job')} of which something is gone"
        yield warning(Area.JOBS, "other jobs", words, rule="artifacts")


def _missing(job: Job) -> list[str]:
    """What is not there or empty. How old it is says nothing: a later job may have renewed it."""
    return [one.check.what for one in look_at_artifacts(job) if not one.size]
