"""What each verb does to a record: pure functions from a job to the next version of it.

No clock, no file and no lock here, so that every store and every test applies
the same change.
"""

from __future__ import annotations

from typing import Any

from mam_core.clock import stamp
from mam_core.errors import StaleAttempt, TransitionRefused
from mam_core.records import TRANSITIONS, Job, Lease, Reason, Status


def touched(job: Job, now: float, **fields: Any) -> Job:
    """`job` with new fields, dated and numbered as the next version of its record."""
    return job.evolve(updated_at=stamp(now), revision=job.revision + 1, **fields)


def claimed(job: Job, now: float, *, node: str, pid: int | None, lease: Lease | None) -> Job:
    """The next attempt begins; nothing of an earlier one is shown as its own."""
    _allow(job, Status.RUNNING)
    return touched(
        job,
        now,
        status=Status.RUNNING,
        attempt=job.attempt + 1,
        node=node,
        pid=pid,
        lease=lease,
        started_at=stamp(now),
        ended_at=None,
        reason=None,
        detail=None,
        cancel_requested_at=None,
        cancel_requested_by=None,
    )


def ended(
    job: Job, now: float, status: Status, reason: Reason | None = None, detail: str | None = None
) -> Job:
    """The job is over; an error counts as a failure unless its reason is nobody's fault."""
    _allow(job, status)
    blameless = reason in (Reason.QUOTA, Reason.LOST, Reason.CANCELLED)
    failed = status is Status.ERROR and not blameless
    return touched(
        job,
        now,
        status=status,
        failures=job.failures + failed,
        ended_at=stamp(now),
        lease=None,
        pid=None,
        reason=reason,
        detail=detail,
    )


def requeued(
    job: Job,
    now: float,
    reason: Reason,
    detail: str | None = None,
    *,
    failed: bool = False,
    not_before: float | None = None,
) -> Job:
    """A running job goes back to pending; the reason stays until the next claim."""
    _allow(job, Status.PENDING)
    return touched(
        job,
        now,
        status=Status.PENDING,
        failures=job.failures + failed,
        not_before=job.not_before if not_before is None else stamp(not_before),
        reason=reason,
        detail=detail,
        **_NOT_RUNNING,
    )


def retried(job: Job, now: float, token: str | None) -> Job:
    """A person wants it again: pending, with a full budget and a token of its own."""
    if job.status not in (Status.ERROR, Status.CANCELLED):
        raise TransitionRefused(
            f"job {job.job_id} is {job.status}: only a job that ended as error or cancelled "
            "can be retried"
        )
    return touched(
        job,
        now,
        status=Status.PENDING,
        failures=0,
        auth_token=token,
        ended_at=None,
        not_before=None,
        reason=None,
        detail=None,
        cancel_requested_at=None,
        cancel_requested_by=None,
        **_NOT_RUNNING,
    )


def cancel_requested(job: Job, now: float, by: str) -> Job:
    """Who runs it is asked to end it; until then the job is running, and shown as cancelling."""
    return touched(job, now, cancel_requested_at=stamp(now), cancel_requested_by=by)


def overridden(job: Job, now: float, status: Status, node: str) -> Job:
    """A person's word: any status to any. A hand-made claim is a new attempt like any other."""
    if status is Status.RUNNING:
        started = job if job.status is Status.PENDING else job.evolve(status=Status.PENDING)
        return claimed(started, now, node=node, pid=None, lease=None)
    if status is Status.PENDING:
        fields: dict[str, Any] = {**_NOT_RUNNING, "ended_at": None, "reason": None, "detail": None}
        fields |= {"cancel_requested_at": None, "cancel_requested_by": None}
        return touched(job, now, status=status, **fields)
    reason = Reason.OVERRIDE if status is Status.ERROR else None
    return touched(
        job,
        now,
        status=status,
        ended_at=stamp(now),
        lease=None,
        pid=None,
        reason=reason,
        detail=None,
    )


def renewed(job: Job, now: float, lease: Lease) -> Job:
    return touched(job, now, lease=lease)


def stale_attempt(job: Job, attempt: int | None) -> StaleAttempt | None:
    """Why a write that speaks for `attempt` must be refused; None when it may be made."""
    if attempt is None:
        return None
    if attempt != job.attempt:
        return StaleAttempt(
            f"job {job.job_id} is at attempt {job.attempt}: a write of attempt {attempt} is refused"
        )
    if job.status is not Status.RUNNING:
        return StaleAttempt(f"attempt {attempt} of job {job.job_id} is over: it is {job.status}")
    return None


def _allow(job: Job, status: Status) -> None:
    if status not in TRANSITIONS[job.status]:
        raise TransitionRefused(f"job {job.job_id} is {job.status} and cannot become {status}")


_NOT_RUNNING: dict[str, Any] = {"lease": None, "pid": None, "node": None, "started_at": None}
