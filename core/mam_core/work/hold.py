"""Our hold on a job while an attempt lasts: the lease, and whether the job is still ours to run.

Looked at again and again, by whoever waits for something. A registry that cannot
be asked or written to for a while is warned of and tried again: only its word
that somebody else has the job ends the hold, and, where hosts share it, so long a
silence that another host may have taken the job up. That last one is a deadline, which
the supervisors hold: whatever keeps us from looking does not keep them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mam_core.audit import warn
from mam_core.errors import JobNotFound, MamError, TransitionRefused
from mam_core.leases import LeaseTerms, fence_sec
from mam_core.pace import paced
from mam_core.records import DEFAULT_TOOL_TIMEOUT_SEC, Job, Status
from mam_core.registry import Registry
from mam_core.work.decision import BACK_OFF, BackOff, Cause
from mam_core.work.orders import FOREVER, GRACE_SEC, Deadlines
from mam_core.work.output import CAP_BYTES
from mam_core.work.relocation import Relocation
from mam_core.work.reports import Ended, Why
from mam_core.work.running import Running
from mam_core.work.voice import Voice

#: How often the record is read for a wish to cancel; a wish is heard this late at most.
LOOK_SEC = 0.5
#: After a heartbeat that failed; sooner than usual, since the lease goes on running out.
_AGAIN_SEC = 1.0
#: In the time of a lease there is room for so many heartbeats at least.
_BEATS = 3
#: We end a job whose time is over. A supervisor does it after so much more: if we could not.
_WALL_SLACK_SEC = 1.0


class Terms(NamedTuple):
    """How an attempt is kept."""

    owner: str  #: of the lease
    registry_path: str
    heartbeat_sec: float = 10.0
    lease_sec: float = 30.0
    grace_sec: float = GRACE_SEC
    relocation: Relocation | None = None  #: the worker has a worktree of its own
    back_off: BackOff = BACK_OFF
    output_max: int = CAP_BYTES  #: what is kept of an attempt's output
    tool_timeout_sec: float = DEFAULT_TOOL_TIMEOUT_SEC  #: so long a tool call holds the idle clock

    @property
    def lease(self) -> LeaseTerms:
        return LeaseTerms(self.owner, self.lease_sec)


class Hold:
    """Of one attempt on its job; keeps the first reason to let go."""

    def __init__(
        self,
        registry: Registry,
        job: Job,
        terms: Terms,
        voice: Voice,
        is_stopping: Callable[[], bool],
    ) -> None:
        self.job = job  #: as it was seen last
        self.cause: Cause | None = None
        self.words = ""
        self._registry = registry
        self._terms = terms
        self._voice = voice
        self._is_stopping = is_stopping
        self._first_seq = job.last_seq
        self._bound: dict[Running, Deadlines] = {}
        now = registry.clock.since_boot()
        self._renewed = job.lease.since_boot if job.lease else now
        self._fence_sec = fence_sec(job.lease) if job.lease else None
        self._beat_sec = min(terms.heartbeat_sec, terms.lease_sec / _BEATS)
        self._beat_at = now + self._beat_sec
        self._look_at = now

    def stop(self, cause: Cause, words: str = "") -> None:
        """The attempt is to end. The first reason counts."""
        if self.cause is None:
            self.cause, self.words = cause, words
            self._voice.mention(f"ending it: {words or cause}")

    @property
    def is_ours(self) -> bool:
        return self.cause is not Cause.TAKEN

    @property
    def is_stopping(self) -> bool:
        """The worker was asked to end."""
        return self._is_stopping()

    @property
    def events_of_others(self) -> int:
        """How many events somebody else has told of this attempt: the agent itself, mostly."""
        return self.job.last_seq - self._first_seq - self._voice.told

    def next_look(self, now: float) -> float:
        """In how many seconds `keep` has something to do."""
        return max(0.0, min(self._beat_at, self._look_at) - now)

    def confirm(self) -> None:
        """Before anything is started, and after the mark of it was written: is the job still ours?

        Whoever was stopped since its claim may have been given up in between, as one that had
        started nothing. While the lease runs nobody does that, and once it is over they find the
        mark. Raises what a heartbeat raises.
        """
        if self._registry.clock.since_boot() - self._renewed > self._terms.lease_sec / 2:
            self._renew()

    # -- deadlines -------------------------------------------------------------------------

    @property
    def deadlines(self) -> Deadlines:
        """Of what is started now: the end of the lease, as far as it is known, and of the job's
        time, which what is started has to itself."""
        wall = self._registry.clock.since_boot() + self.job.timeout_sec + _WALL_SLACK_SEC
        return Deadlines(self._lease_until, wall)

    @property
    def is_over(self) -> bool:
        """Another host may have the job."""
        return self._registry.clock.since_boot() >= self._lease_until

    def bind(self, running: Running, until: Deadlines) -> None:
        """From now on each renewal moves its deadline ahead."""
        self._bound[running] = until
        self._feed()

    def unbind(self, running: Running) -> None:
        """It is none of this job's any more."""
        if self._bound.pop(running, None) is not None:
            running.allow(FOREVER)

    def heed(self, ended: Ended) -> None:
        """A supervisor that ended something at a deadline did it for us, who could not."""
        if ended.why is Why.LEASE_OVER:
            cause, words = Cause.CUT_OFF, self._silence
        elif ended.why is Why.TIMEOUT:
            cause, words = Cause.TIMEOUT, f"it ran for {self.job.timeout_sec:g} s"
        else:
            return
        if self.cause is not cause:  # also where somebody has the job by now: that is why
            self._voice.mention(f"its supervisor has ended it: {words}")
        if self.cause is None:
            self.cause, self.words = cause, words

    @property
    def _lease_until(self) -> float:
        """Counted from before the question that renewed the lease: its own date is later."""
        return FOREVER.lease if self._fence_sec is None else self._renewed + self._fence_sec

    def _feed(self) -> None:
        for running, until in self._bound.items():
            running.allow(until._replace(lease=self._lease_until))

    @property
    def _silence(self) -> str:
        silent = self._registry.clock.since_boot() - self._renewed
        return f"its lease could not be renewed for {silent:.0f} s, and another host may take it up"

    # -- looking ---------------------------------------------------------------------------

    def keep(self, now: float) -> None:
        """Renew the lease when it is time to, and look whether anybody wishes something."""
        self._end_if_over()
        if now >= self._look_at:
            self._look_at = now + paced(LOOK_SEC)
            self._look()
            self._end_if_over()  # the answer may have taken longer than the lease
        if now >= self._beat_at:
            self._beat_at = now + self._beat_sec
            self._beat(now)

    def _end_if_over(self) -> None:
        """Asked before the lease is renewed: a renewal that comes too late would hide it."""
        if self.is_over:
            self.stop(Cause.CUT_OFF, self._silence)

    def _look(self) -> None:
        try:
            job = self._registry.get(self.job.job_id)
        except JobNotFound:
            self.stop(Cause.TAKEN, "its record is gone")
        except (MamError, OSError):
            return  # looked at again soon
        else:
            self._follow(job)

    def _beat(self, now: float) -> None:
        try:
            self._renew()
        except (TransitionRefused, JobNotFound) as problem:
            self.stop(Cause.TAKEN, problem.message)
        except (MamError, OSError) as problem:
            self._beat_at = now + min(paced(_AGAIN_SEC), self._beat_sec)
            warn(f"the lease of job {self.job.job_id} is not renewed: {problem}")

    def _renew(self) -> None:
        job_id, attempt = self.job.job_id, self.job.attempt
        asked = self._registry.clock.since_boot()
        self._follow(self._registry.heartbeat(job_id, self._terms.lease, attempt=attempt))
        self._renewed = asked
        self._feed()

    def _follow(self, job: Job) -> None:
        if job.attempt != self.job.attempt or job.status is not Status.RUNNING:
            self.stop(Cause.TAKEN, f"the job is {job.status} now, at attempt {job.attempt}")
            return
        self.job = job
        if job.is_cancelling:
            self.stop(Cause.CANCELLED)
