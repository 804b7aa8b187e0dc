"""Run ended jobs once more, under the same id, as a new attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mam_core.errors import TransitionRefused
from mam_core.operations.outcome import Outcome, for_each
from mam_core.records import Job, Reason
from mam_core.registry import Registry
from mam_core.rights import Right

if TYPE_CHECKING:
    from mam_core.config import Config


def retry(
    registry: Registry, job_ids: Sequence[str], *, resume_by: Config | None = None
) -> list[Outcome]:
    """An outcome each, which also says how the attempt before it ended.

    Agents start afresh, unless `resume_by` has their profiles: then each goes on in the session
    of its last attempt, and a job whose agent cannot is refused.
    """

    def act(job_id: str) -> Outcome:
        registry.check_allowed(Right.RETRY, job_id)
        before = registry.get(job_id)
        if resume_by is not None:
            _check_can_resume(before, resume_by)
        job = registry.retry(job_id, resume=resume_by is not None)
        on = f" and goes on in session {job.resume}" if job.resume else ""
        words = f"job {job_id} is pending again{on}; before, it was {ending(before)}"
        return Outcome(job_id, True, words, job)

    return for_each(job_ids, act)


def _check_can_resume(job: Job, config: Config) -> None:
    from mam_core.agents.profiles import profile_of

    if not profile_of(config, job.agent).resume:
        raise TransitionRefused(
            f"job {job.job_id} cannot be resumed: {job.agent} takes up no earlier session"
        )


def ending(job: Job) -> str:
    """How a job ended, in words: its status, reason and detail."""
    told_by_status = job.reason in (None, Reason.CANCELLED)
    reason = "" if told_by_status else f" ({job.reason})"
    detail = f": {job.detail}" if job.detail else ""
    return f"{job.status}{reason}{detail}"
