"""Cancel jobs: at once where nobody supervises them, else by asking their worker."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from mam_core.errors import TransitionRefused
from mam_core.fields import check_text
from mam_core.operations.outcome import Outcome, for_each
from mam_core.pace import paced
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.rights import Right

_LOOK_SEC = 0.1


def cancel(registry: Registry, job_ids: Sequence[str], why: str = "") -> list[Outcome]:
    """An outcome each; one that is already cancelled is as wished, one that has ended is not."""
    check_text("why", why)

    def act(job_id: str) -> Outcome:
        registry.check_allowed(Right.CANCEL, job_id)
        job = registry.request_cancel(job_id, why)
        if job.status is Status.CANCELLED:
            return Outcome(job_id, True, _cancelled(job), job)
        if job.is_cancelling:
            return Outcome(job_id, True, _cancelling(job), job)
        ended = TransitionRefused(f"job {job_id} is {job.status}: there is nothing to cancel")
        return Outcome.refused(job_id, ended, job)

    return for_each(job_ids, act)


def awaited(registry: Registry, outcomes: Sequence[Outcome], wait_sec: float) -> list[Outcome]:
    """The same when those that were asked to end have ended, with what they left; one that has
    not ended after `wait_sec` is refused."""
    deadline = registry.clock.since_boot() + wait_sec
    found = list(outcomes)
    while any(_is_awaited(one) for one in found) and registry.clock.since_boot() < deadline:
        time.sleep(paced(_LOOK_SEC))
        waiting = [one.job_id for one in found if _is_awaited(one)]
        seen = {one.job_id: one for one in for_each(waiting, partial(_looked_at, registry))}
        found = [seen.get(one.job_id, one) for one in found]
    return [_given_up(one, wait_sec) if _is_awaited(one) else one for one in found]


def _given_up(one: Outcome, wait_sec: float) -> Outcome:
    words = f"{one.message}; still running after {wait_sec:g} s, `mam why {one.job_id}` says more"
    return Outcome.refused(one.job_id, TransitionRefused(words), one.job)


def _is_awaited(one: Outcome) -> bool:
    return one.job is not None and one.job.is_cancelling


def _looked_at(registry: Registry, job_id: str) -> Outcome:
    job = registry.get(job_id)
    if job.is_cancelling:
        return Outcome(job_id, True, _cancelling(job), job)
    if job.status is Status.CANCELLED:
        return Outcome(job_id, True, _cancelled(job), job)
    words = f"job {job.job_id} is {job.status}: it was not cancelled"
    return Outcome.refused(job.job_id, TransitionRefused(words), job)


def _cancelling(job: Job) -> str:
    owner = f" ({job.lease.owner})" if job.lease else ""
    return f"job {job.job_id} is cancelling: its worker{owner} was asked to end it"


def _cancelled(job: Job) -> str:
    """With what its last attempt left behind."""
    return "; ".join(filter(None, (f"job {job.job_id} is cancelled", job.left_behind)))
