"""What becomes of a job when an attempt is over: one table of rules, and no process.

The worker's own reasons come first (a person cancelled it, its time was up),
then how the processes ended, then what the agent said, and last, for a job that
is to be completed, what its checks said.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from mam_core import changes
from mam_core.agents.streams.base import Outcome
from mam_core.records import Job, Reason, Status
from mam_core.work.launch import PROCESS
from mam_core.work.reports import Ended, NotStarted, Why
from mam_core.work.validation import Verdict

#: How long an agent is left alone whose usage limit does not say when it ends.
QUOTA_SEC = 900.0
#: How long a job waits that a host had no means to begin with.
NOT_HERE_SEC = 30.0


class BackOff(NamedTuple):
    """Between two tries of a job that failed: growing, bounded, never the same for two of them."""

    first_sec: float = 10.0
    factor: float = 2.0
    most_sec: float = 600.0

    def pause(self, failures: int, jitter: float) -> float:
        """After so many failures before this one; `jitter` is between 0 and 1."""
        full = min(self.most_sec, self.first_sec * self.factor ** min(failures, 16))
        return full * (0.5 + jitter / 2)

    def covers(self, job: Job, seconds: float) -> bool:
        """So long a wait before the next try of a job is the pause after its last failure, and no
        date that a person set."""
        is_retry = job.failures > 0 and job.reason not in _NO_FAILURES
        return is_retry and seconds <= self.pause(job.failures - 1, 1.0)


#: A job that waits for one of these reasons did not fail last.
_NO_FAILURES = frozenset(
    {None, Reason.LOST, Reason.STOPPED, Reason.QUOTA, Reason.OVERRIDE, Reason.EDITED, Reason.OTHER}
)
BACK_OFF = BackOff()
#: The least between two tries that met a usage limit. No setting: the number of such tries has no
#: bound of its own, as that of failures has.
QUOTA_BACK_OFF = BackOff(most_sec=QUOTA_SEC)


class Cause(StrEnum):
    """Why the worker itself ended an attempt."""

    CANCELLED = "cancelled"
    STOPPED = "stopped"  #: the worker was asked to end, and hands back
    TIMEOUT = "timeout"
    IDLE_TIMEOUT = "idle timeout"
    BUDGET = "budget"
    HOPELESS = "hopeless"  #: the agent goes in circles
    TAKEN = "taken"  #: the job is no longer ours
    CUT_OFF = "cut off"  #: nobody knows: the store that hosts share could not be reached for long


class Facts(NamedTuple):
    """All that is known about an attempt that is over."""

    ended: Ended
    outcome: Outcome
    cause: Cause | None = None
    words: str = ""  #: about the cause
    not_started: NotStarted | None = None
    verdict: Verdict | None = None


class Decision(NamedTuple):
    """What the registry is to be told. Without a status the job waits for its next attempt."""

    status: Status | None
    reason: Reason | None
    detail: str
    failed: bool = False
    not_before: float | None = None
    quota_until: float | None = None  #: all jobs of this agent wait until then
    left_behind: str = ""  #: what the attempt left in its folder, in words


def wants_checks(facts: Facts) -> bool:
    """The attempt came to an end by itself, and what the agent says of it may be success."""
    if facts.cause is not None or facts.not_started is not None:
        return False
    if facts.ended.why is not Why.AGENT_ENDED or facts.ended.was_oom:
        return False
    return facts.outcome.ok or facts.outcome.reason is Reason.REFUSED


def not_here(job: Job, why: str, now: float) -> Decision:
    """The host could not begin with it, which is no fault of the job: somebody else may."""
    if job.is_cancelling:
        return _cancelled(job)
    words = f"its worker could not run it: {why}"
    return Decision(None, Reason.OTHER, words, not_before=now + NOT_HERE_SEC)


def decide(
    job: Job,
    facts: Facts,
    now: float,
    jitter: Callable[[], float] = random.random,
    back_off: BackOff = BACK_OFF,
) -> Decision:
    """The rules, in their order."""
    first = _by_cause(job, facts) or _by_process(job, facts, now)
    if first is None and facts.outcome.reason is Reason.QUOTA:
        soonest = now + QUOTA_BACK_OFF.pause(job.quota_hits, jitter())
        return _over_quota(facts.outcome, now, soonest)
    decision = first or _by_outcome(facts)
    if decision.status is Status.ERROR and decision.failed:
        return _again(job, decision, now + back_off.pause(job.failures, jitter()))
    return decision


def _over_quota(outcome: Outcome, now: float, soonest: float) -> Decision:
    """The agent's word for when its limit ends is believed only where it lies ahead.

    A moment that has passed, or one of a second, would let the job go round as fast as its agent
    starts; no failure is counted here, so nothing else would end that.
    """
    until = max(outcome.quota_until or now + QUOTA_SEC, soonest)
    return Decision(None, Reason.QUOTA, outcome.detail, False, until, until)


def _by_cause(job: Job, facts: Facts) -> Decision | None:
    words = facts.words
    if facts.cause is Cause.CANCELLED:
        return _cancelled(job)
    if facts.cause is Cause.STOPPED:
        return Decision(None, Reason.STOPPED, words or "its worker was asked to end")
    if facts.cause is Cause.CUT_OFF:
        return Decision(None, Reason.LOST, words)
    reason = _FAILURES.get(facts.cause) if facts.cause else None
    return Decision(Status.ERROR, reason, words, failed=True) if reason else None


_FAILURES = {
    Cause.TIMEOUT: Reason.TIMEOUT,
    Cause.IDLE_TIMEOUT: Reason.IDLE_TIMEOUT,
    Cause.BUDGET: Reason.BUDGET,
    Cause.HOPELESS: Reason.AGENT,
}


def _cancelled(job: Job) -> Decision:
    return Decision(Status.CANCELLED, Reason.CANCELLED, changes.cancel_words(job))


def _by_process(job: Job, facts: Facts, now: float) -> Decision | None:
    ended, not_started = facts.ended, facts.not_started
    if not_started is not None:
        if not_started.stage == PROCESS:
            return not_here(job, not_started.words, now)
        reason = Reason.NOT_FOUND if not_started.exit_code == 127 else Reason.EXIT
        # The same command would fail in the same way: trying again helps nobody.
        return Decision(Status.ERROR, reason, not_started.words)
    if ended.was_oom:
        words = f"it used {ended.peak >> 20:,} MiB" if ended.peak else "the kernel ended it"
        return Decision(Status.ERROR, Reason.OOM, f"out of memory: {words}", failed=True)
    if ended.why is not Why.AGENT_ENDED:
        return Decision(None, Reason.LOST, f"its supervisor was ended: {ended.why}")
    return None


def _by_outcome(facts: Facts) -> Decision:
    outcome, verdict = facts.outcome, facts.verdict
    if wants_checks(facts):
        if verdict is not None and not verdict.passed:
            return Decision(Status.ERROR, Reason.VALIDATION, verdict.words, failed=True)
        if outcome.ok or (verdict is not None and verdict.checks):
            remark = verdict.remark if verdict is not None else ""
            words = "; ".join(filter(None, (remark, outcome.detail)))
            return Decision(Status.COMPLETED, None, words)
    reason = outcome.reason or Reason.EXIT
    return Decision(Status.ERROR, reason, outcome.detail, failed=True)


def _again(job: Job, decision: Decision, not_before: float) -> Decision:
    """A failed attempt is tried again while its budget lasts."""
    if job.failures + 1 >= job.max_attempts:
        return decision
    return decision._replace(status=None, not_before=not_before)
