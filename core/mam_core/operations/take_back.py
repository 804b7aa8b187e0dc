"""Take a cancel back: the jobs that were cancelled are pending again, and no others.

A cancel is known again by the moment at which it was asked for, which the record keeps until
somebody tries the job again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mam_core.errors import LockTimeout, StoreError, TransitionRefused
from mam_core.operations.cancel import cancel
from mam_core.operations.outcome import Outcome, for_each
from mam_core.operations.retry import retry
from mam_core.records import Status
from mam_core.registry import Registry

#: The registry itself failed, and the job was not even looked at.
_UNREACHED = (LockTimeout, StoreError)


class Cancelled(NamedTuple):
    """One job whose cancel was asked for by us."""

    job_id: str
    asked_at: str
    not_before: str | None = None  #: what the job had; trying it again clears that


def cancel_to_take_back(
    registry: Registry, job_ids: Sequence[str]
) -> tuple[list[Outcome], list[Cancelled]]:
    """As `cancel`, and which of the jobs it was that cancelled them: the others were before."""
    ours: list[Cancelled] = []

    def act(job_id: str) -> Outcome:
        before = registry.get(job_id)
        (outcome,) = cancel(registry, [job_id])
        job = outcome.job
        was_open = not before.is_ended and not before.is_cancelling
        if outcome.ok and was_open and job is not None and job.cancel_requested_at:
            ours.append(Cancelled(job_id, job.cancel_requested_at, before.not_before))
        if outcome.error is not None:
            raise outcome.error
        return outcome

    return for_each(job_ids, act), ours


def take_back(
    registry: Registry, cancels: Sequence[Cancelled]
) -> tuple[list[Outcome], list[Cancelled]]:
    """An outcome each, and those for which it can be tried again later.

    A job that went its own way since is left alone.
    """
    by_id: Mapping[str, Cancelled] = {one.job_id: one for one in cancels}
    later: list[Cancelled] = []

    def act(job_id: str) -> Outcome:
        job = registry.get(job_id)
        is_ours = job.cancel_requested_at == by_id[job_id].asked_at
        if is_ours and job.is_cancelling:
            later.append(by_id[job_id])
            words = f"job {job_id} is still cancelling: its worker has not ended it yet"
        elif is_ours and job.status is Status.CANCELLED:
            return retry(registry, [job_id])[0]
        else:
            words = f"job {job_id} is left alone: it is {job.status}, and not by that cancel"
        return Outcome.refused(job_id, TransitionRefused(words), job)

    outcomes = for_each(list(by_id), act)
    unreached = [by_id[one.job_id] for one in outcomes if isinstance(one.error, _UNREACHED)]
    return outcomes, later + unreached
