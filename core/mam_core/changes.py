"""What each verb does to a record: pure functions from a job to the next version of it.

No clock, no file and no lock here, so that every store and every test applies
the same change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mam_core.clock import stamp
from mam_core.errors import StaleAttempt, TransitionRefused
from mam_core.record_parts import Lease, MemoryCap
from mam_core.records import TRANSITIONS, Job, Reason, Status

if TYPE_CHECKING:
    from mam_core.messages import Message

#: So often in a row an attempt may be lost, or as often as it may fail where that is more.
MAX_LOSSES = 3


def touched(job: Job, now: float, **fields: Any) -> Job:
    """`job` with new fields, dated and numbered as the next version of its record."""
    return job.evolve(updated_at=stamp(now), revision=job.revision + 1, is_edited=False, **fields)


def claimed(
    job: Job,
    now: float,
    *,
    node: str,
    pid: int | None,
    lease: Lease | None,
    memory_cap: MemoryCap | None = None,
) -> Job:
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
        memory_cap=memory_cap,
        started_at=stamp(now),
        ended_at=None,
        reason=None,
        detail=None,
        cancel_requested_at=None,
        cancel_requested_by=None,
        left_behind=None,
        agent_session_id=job.resume,
        messages=_closed(job),
    )


def capped(job: Job, now: float, cap: MemoryCap) -> Job:
    """Another means holds the attempt to its memory than was thought at its claim."""
    return touched(job, now, memory_cap=cap)


def in_session(job: Job, now: float, session_id: str) -> Job:
    """The agent has said which session of its own it works in; `retry` may take that up."""
    return touched(job, now, agent_session_id=session_id)


def ended(
    job: Job,
    now: float,
    status: Status,
    reason: Reason | None = None,
    detail: str | None = None,
    left_behind: str | None = None,
) -> Job:
    """The job is over; an error counts as a failure unless its reason is nobody's fault."""
    _allow(job, status)
    blameless = reason in (Reason.QUOTA, Reason.LOST, Reason.CANCELLED)
    failed = status is Status.ERROR and not blameless
    if reason is None and job.reason is Reason.EDITED:
        reason = job.reason  # what it was to keep may be what was edited
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
        left_behind=left_behind,
        messages=_closed(job),
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
    """A running job goes back to pending; the reason stays until the next claim.

    One that was lost too often in a row is over instead: whatever loses it would do so for ever.
    A failed one starts afresh: taking up that session may be what made it fail.
    Usage limits count on through attempts that say nothing about them (lost, handed back), so that
    two reasons in turn go round no faster than one.
    """
    losses = job.losses + 1 if reason is Reason.LOST else 0
    if losses >= max(MAX_LOSSES, job.max_attempts):
        words = ": ".join(filter(None, (f"lost {losses} times in a row", detail)))
        return ended(job.evolve(losses=losses), now, Status.ERROR, reason, words)
    _allow(job, Status.PENDING)
    return touched(
        job,
        now,
        status=Status.PENDING,
        failures=job.failures + failed,
        losses=losses,
        quota_hits=0 if failed else job.quota_hits + (reason is Reason.QUOTA),
        resume=None if failed else job.resume,
        not_before=job.not_before if not_before is None else stamp(not_before),
        reason=reason,
        detail=detail,
        messages=_closed(job),
        **_NOT_RUNNING,
    )


def retried(job: Job, now: float, token: str | None, *, resume: bool = False) -> Job:
    """A person wants it again: pending, with a full budget and a token of its own.

    With `resume` the agent goes on in the session of the last attempt; else it starts afresh.
    """
    if job.status not in (Status.ERROR, Status.CANCELLED):
        raise TransitionRefused(
            f"job {job.job_id} is {job.status}: only a job that ended as error or cancelled "
            "can be retried"
        )
    if resume and job.agent_session_id is None:
        raise TransitionRefused(
            f"job {job.job_id} cannot be resumed: it is not known in which session its agent was"
        )
    return touched(
        job,
        now,
        status=Status.PENDING,
        failures=0,
        losses=0,
        quota_hits=0,
        resume=job.agent_session_id if resume else None,
        auth_token=token,
        ended_at=None,
        not_before=None,
        reason=None,
        detail=None,
        cancel_requested_at=None,
        cancel_requested_by=None,
        **_NOT_RUNNING,
    )


def cancel_requested(job: Job, now: float, by: str, why: str = "") -> Job:
    """Who runs it is asked to end it; until then the job is running, and shown as cancelling."""
    return touched(
        job, now, cancel_requested_at=stamp(now), cancel_requested_by=by, detail=why or job.detail
    )


def cancel_words(job: Job) -> str:
    """Who wished that it be cancelled, and why: what a running record says of itself is that."""
    by = f" by {job.cancel_requested_by}" if job.cancel_requested_by else ""
    why = f": {job.detail}" if job.is_cancelling and job.detail else ""
    return f"cancelled{by}{why}"


def overridden(job: Job, now: float, status: Status, node: str) -> Job:
    """A person's word: any status to any. A hand-made claim is a new attempt like any other."""
    if status is Status.RUNNING:
        started = job if job.status is Status.PENDING else job.evolve(status=Status.PENDING)
        return claimed(started, now, node=node, pid=None, lease=None)
    if status is Status.PENDING:
        fields: dict[str, Any] = {**_NOT_RUNNING, "ended_at": None, "reason": None, "detail": None}
        fields |= {"cancel_requested_at": None, "cancel_requested_by": None}
        fields |= {"losses": 0, "quota_hits": 0}
        return touched(job, now, status=status, messages=_closed(job), **fields)
    return touched(
        job,
        now,
        status=status,
        ended_at=stamp(now),
        lease=None,
        pid=None,
        reason=Reason.OVERRIDE,
        detail=None,
        messages=_closed(job),
    )


def noticed(job: Job, now: float) -> Job:
    """Another tool wrote the record: said in it from now on, until its next attempt."""
    return touched(job, now, reason=Reason.EDITED)


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


def _closed(job: Job) -> tuple[Message, ...]:
    """An attempt takes its messages with it: the next one was not spoken to."""
    if not job.messages:
        return ()
    from mam_core.messages import closed

    return closed(job.messages)


def _allow(job: Job, status: Status) -> None:
    if status not in TRANSITIONS[job.status]:
        raise TransitionRefused(f"job {job.job_id} is {job.status} and cannot become {status}")


_NOT_RUNNING: dict[str, Any] = {
    "lease": None,
    "pid": None,
    "node": None,
    "started_at": None,
    "left_behind": None,
}
