"""Run ended jobs once more, under the same id, as a new attempt."""

from __future__ import annotations

from collections.abc import Sequence

from mam_core.operations.outcome import Outcome, for_each
from mam_core.records import Job, Reason
from mam_core.registry import Registry


def retry(registry: Registry, job_ids: Sequence[str]) -> list[Outcome]:
    """An outcome each, which also says how the attempt before it ended."""

    def act(job_id: str) -> Outcome:
        before = registry.get(job_id)
        job = registry.retry(job_id)
        words = f"job {job_id} is pending again; before, it was {ending(before)}"
        return Outcome(job_id, True, words, job)

    return for_each(job_ids, act)


def ending(job: Job) -> str:
    """How a job ended, in words: its status, reason and detail."""
    told_by_status = job.reason in (None, Reason.CANCELLED)
    reason = "" if told_by_status else f" ({job.reason})"
    detail = f": {job.detail}" if job.detail else ""
    return f"{job.status}{reason}{detail}"
