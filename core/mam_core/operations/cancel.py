"""Cancel jobs: at once where nobody supervises them, else by asking their worker."""

from __future__ import annotations

from collections.abc import Sequence

from mam_core.errors import TransitionRefused
from mam_core.fields import check_text
from mam_core.operations.outcome import Outcome, for_each
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.rights import Right


def cancel(registry: Registry, job_ids: Sequence[str], why: str = "") -> list[Outcome]:
    """An outcome each; one that is already cancelled is as wished, one that has ended is not."""
    check_text("why", why)

    def act(job_id: str) -> Outcome:
        registry.check_allowed(Right.CANCEL, job_id)
        job = registry.request_cancel(job_id, why)
        if job.status is Status.CANCELLED:
            return Outcome(job_id, True, f"job {job_id} is cancelled", job)
        if job.is_cancelling:
            owner = f" ({job.lease.owner})" if job.lease else ""
            words = f"job {job_id} is cancelling: its worker{owner} was asked to end it"
            return Outcome(job_id, True, words, job)
        ended = TransitionRefused(f"job {job_id} is {job.status}: there is nothing to cancel")
        return Outcome.refused(job_id, ended, job)

    return for_each(job_ids, act)
