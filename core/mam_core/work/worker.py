"""A worker: slots that claim jobs of one label and run them, one after the other.

Each slot is a thread with a registry of its own. Those without a job take turns
in looking for one, so that a hundred idle slots ask no more often than one does.
What goes on beside them (sweep, broker, outbox) is the business of whoever starts
the worker (`operations/work`).
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from enum import StrEnum
from typing import NamedTuple

from mam_core.agents.profiles import Profile
from mam_core.audit import warn
from mam_core.claims import Rule, is_closed
from mam_core.errors import JobNotFound, MamError, UnreadableRecord
from mam_core.events.public_brokers import public_warning
from mam_core.leases import LeaseTerms
from mam_core.pace import paced
from mam_core.process_mark import ProcessMark
from mam_core.records import DEFAULT_TOOL_TIMEOUT_SEC, Job, Reason, Status
from mam_core.registry import Registry
from mam_core.stores.base import GateKind, Query
from mam_core.work.attempt import Attempt
from mam_core.work.caps import Caps
from mam_core.work.counterpart import Counterpart, CounterpartOf, no_counterpart
from mam_core.work.decision import BACK_OFF, NOT_HERE_SEC, BackOff
from mam_core.work.hold import Terms
from mam_core.work.output import CAP_BYTES
from mam_core.work.placard import Placard
from mam_core.work.relocation import Relocation
from mam_core.work.screen import Screen

#: Between two looks for a job when there was none: a claim that finds nothing costs a millisecond.
_IDLE_SEC = 0.5
#: After a registry that could not be asked, or a host that could not begin.
_TROUBLE_SEC = 2.0
_LOOK_SEC = 0.05


class Until(StrEnum):
    """When a worker ends by itself."""

    ONCE = "once"  #: after one job a slot, or when none can be claimed
    #: when none can be claimed, none runs that another may come after, and no failed one is about
    #: to be tried again
    DRAINED = "drained"
    STOPPED = "stopped"  #: never


class Work(NamedTuple):
    """What a worker does."""

    agent_session: str
    agents: tuple[str, ...]
    slots: int
    until: Until
    heartbeat_sec: float
    lease_sec: float
    grace_sec: float
    registry_path: str
    relocation: Relocation | None = None
    back_off: BackOff = BACK_OFF
    output_max: int = CAP_BYTES
    caps: Caps = Caps()
    tool_timeout_sec: float = DEFAULT_TOOL_TIMEOUT_SEC


class Stops:
    """How a worker is asked to end: first to finish what runs, then to hand it back."""

    def __init__(self) -> None:
        self._claiming = True
        self._hands_back = False

    def finish(self) -> None:
        """Claim nothing more."""
        self._claiming = False

    def hand_back(self) -> None:
        """End what runs, too; its jobs wait for another worker."""
        self._claiming = False
        self._hands_back = True

    def may_claim(self) -> bool:
        return self._claiming

    def hands_back(self) -> bool:
        return self._hands_back


class Worker:
    """Runs until its work is done or it is asked to stop."""

    def __init__(
        self,
        work: Work,
        open_registry: Callable[[], Registry],
        profile_of: Callable[[str], Profile],
        screen: Screen,
        stops: Stops,
        counterpart_of: CounterpartOf = no_counterpart,
        placard: Placard | None = None,
    ) -> None:
        """`placard` is on the pane that it lives in, if it lives in one."""
        self.ran = 0  #: attempts
        self.failed = 0  #: those that did not end in a completed job
        self.vanished = ""  #: a job whose record was removed while it ran
        #: Called before it ends for want of jobs: one may come back, or fall due, in that moment.
        self.look_again: Callable[[Callable[[], bool]], None] = _nothing
        self._work = work
        self._open_registry = open_registry
        self._profile_of = profile_of
        self._screen = screen
        self._stops = stops
        self._counterpart_of = counterpart_of
        self._placard = placard
        self._turn = threading.Condition()
        self._look_at = 0.0
        self._count = threading.Lock()
        self._running: set[str] = set()
        self._in_doubt: set[int] = set()  #: slots whose last claim was not answered
        self._broken: set[tuple[str, int]] = set()  #: attempts that are left to the sweep
        self._said = ""

    def run(self) -> None:
        """In the caller's thread until all slots are done; signals interrupt only its waiting."""
        slots = [
            threading.Thread(target=self._slot, args=(number,), name=f"mam-slot-{number}")
            for number in range(self._work.slots)
        ]
        for slot in slots:
            slot.start()
        while any(slot.is_alive() for slot in slots):
            time.sleep(paced(_LOOK_SEC))

    @property
    def running(self) -> tuple[str, ...]:
        """The jobs that its slots are at."""
        with self._count:
            return tuple(sorted(self._running))

    # -- a slot ----------------------------------------------------------------------------

    def _slot(self, number: int) -> None:
        try:
            with self._open_registry() as registry:
                while (job := self._next(registry, number)) is not None:
                    self._run_one(registry, job, number)
                    if self._work.until is Until.ONCE:
                        return
        except (MamError, OSError, sqlite3.Error) as problem:
            warn(f"slot {number} ends: {problem}")

    def _next(self, registry: Registry, number: int) -> Job | None:
        """The next job, waited for if need be; None when this slot is done.

        Who has just ended a job looks at once; else one looks for all who wait.
        """
        waited = False
        while self._stops.may_claim():
            with self._turn:
                pause = self._look_at - time.monotonic()
                if waited and pause > 0:
                    self._turn.wait(pause)
                    continue
                waited = True
                job, again = self._looked(registry, number)
                if job is not None:
                    return job
                self._look_at = time.monotonic() + (again or 0.0)
                if again is None:
                    self._turn.notify_all()  # they need not wait any longer, either
                    return None
        return None

    def _looked(self, registry: Registry, number: int) -> tuple[Job | None, float | None]:
        """A job; or none, and when to look again: None for never."""
        try:
            job = self._claimed(registry, number)
            is_over = job is None and self._may_end(registry)
            if is_over:
                self.look_again(self._is_stopping)
                job = None if self._is_stopping() else self._claimed(registry, number)
        except (MamError, OSError, sqlite3.Error) as problem:
            if str(problem) != self._said:
                self._said = str(problem)
                warn(f"no job can be claimed: {problem}")
            return None, paced(_TROUBLE_SEC)
        self._said = ""
        if job is not None:
            with self._count:
                self._running.add(job.job_id)
            return job, 0.0
        return None, None if is_over else paced(_IDLE_SEC)

    def _is_stopping(self) -> bool:
        return not self._stops.may_claim()

    def _may_end(self, registry: Registry) -> bool:
        """There is no job to claim, and that is how this worker ends."""
        if self._work.until is Until.DRAINED:
            return self._is_drained(registry)
        return self._work.until is Until.ONCE

    def _is_drained(self, registry: Registry) -> bool:
        """None that runs here could bring another, and none is about to be tried again."""
        return not self._running and not self._awaits_retry(registry)

    def _awaits_retry(self, registry: Registry) -> bool:
        """A job of ours has failed and only its back-off is left before its next attempt.

        Nothing else is waited for: a usage limit, a pause, a full group or a date that a person
        set may hold a job for days.
        """
        now = registry.clock.now()
        pending = Query(frozenset({Status.PENDING}), self._work.agent_session)
        for summary in registry.store.find(pending)[0]:
            due = summary.not_before or 0.0
            if summary.agent not in self._work.agents or summary.reason is None or due <= now:
                continue
            with suppress(JobNotFound, UnreadableRecord):
                if self._work.back_off.covers(registry.get(summary.job_id), due - now):
                    refusals = registry.refusals(summary.job_id)
                    if all(refusal.rule is Rule.NOT_YET for refusal in refusals):
                        gate = registry.store.facts().gates().find(GateKind.NODE, registry.node)
                        return not is_closed(gate, now)
        return False

    def _claimed(self, registry: Registry, number: int) -> Job | None:
        lease = LeaseTerms(self._owner(registry, number), self._work.lease_sec)
        doubted = number in self._in_doubt
        self._in_doubt.add(number)
        job = self._unheard_of(registry, lease) if doubted else None
        job = job or registry.claim(
            self._work.agent_session,
            agents=self._work.agents,
            lease=lease,
            pid=os.getpid(),
            cap_of=self._work.caps.of,
        )
        self._in_doubt.discard(number)
        return job

    def _unheard_of(self, registry: Registry, lease: LeaseTerms) -> Job | None:
        """A job that this slot holds and does not know of: its claim was made, the answer lost.

        A slot that looks for a job runs none; without this the job would wait for its lease to end.
        """
        running = Query(frozenset({Status.RUNNING}), self._work.agent_session)
        for job in registry.store.bodies(running):
            if not isinstance(job, Job) or (job.job_id, job.attempt) in self._broken:
                continue
            if job.lease is not None and job.lease.owner == lease.owner:
                return registry.heartbeat(job.job_id, lease, attempt=job.attempt)
        return None

    def _owner(self, registry: Registry, number: int) -> str:
        """Who holds the lease: so that a sweep can ask whether that process is still there."""
        mark = ProcessMark.of(os.getpid())
        started = mark.started if mark else ""
        return f"{registry.node}:{os.getpid()}:{started}:{number}"

    def _run_one(self, registry: Registry, job: Job, number: int) -> None:
        self._screen.say(job.job_id, f"attempt {job.attempt}, {job.agent}")
        if warning := public_warning(job.broker.host, f"the events of job {job.job_id}"):
            warn(warning)
        ended = None
        placard = self._placard
        try:
            with placard.shows(job.job_id, job.attempt) if placard else nullcontext():
                ended, could_not_begin = self._attempted(registry, job, number)
        except Exception as problem:
            # A bug of ours: the lease runs out and the sweep takes care of the job.
            warn(f"the attempt of job {job.job_id} broke off: {type(problem).__name__}: {problem}")
            self._broken.add((job.job_id, job.attempt))
            could_not_begin = True
        if ended is None:
            with suppress(MamError, OSError, sqlite3.Error):
                self._look_for(registry, job.job_id)
        with self._count:
            self._running.discard(job.job_id)
            self.ran += 1
            self.failed += ended is None or ended.status is not Status.COMPLETED
        if could_not_begin:
            self._sleep(paced(_TROUBLE_SEC))

    def _look_for(self, registry: Registry, job_id: str) -> None:
        try:
            registry.get(job_id)
        except JobNotFound:
            self.vanished = job_id

    def _attempted(self, registry: Registry, job: Job, number: int) -> tuple[Job | None, bool]:
        """The job afterwards, and whether it is this host that was not up to it."""
        terms = Terms(
            self._owner(registry, number),
            self._work.registry_path,
            self._work.heartbeat_sec,
            self._work.lease_sec,
            self._work.grace_sec,
            self._work.relocation,
            self._work.back_off,
            self._work.output_max,
            self._work.tool_timeout_sec,
        )
        try:
            profile = self._profile_of(job.agent)
        except MamError as problem:
            words = problem.message
            ended = registry.finish(
                job.job_id,
                Status.ERROR,
                attempt=job.attempt,
                reason=Reason.OTHER,
                detail=words,
                told={},
            )
            return ended, False
        counterpart = self._counterpart_of(registry, job)
        if counterpart is None:
            attempt = self._attempt(registry, job, profile, terms)
            return attempt.run(), attempt.could_not_begin
        return self._run_with(counterpart, registry, job, profile, terms)

    def _run_with(
        self,
        counterpart: Counterpart,
        registry: Registry,
        job: Job,
        profile: Profile,
        terms: Terms,
    ) -> tuple[Job | None, bool]:
        """An attempt that somebody else's file knows as well; it has the first word."""
        try:
            refusal = counterpart.refusal()
        except (MamError, OSError) as problem:
            later = registry.clock.now() + NOT_HERE_SEC
            given_back = registry.requeue(
                job.job_id,
                Reason.OTHER,
                attempt=job.attempt,
                detail=str(problem),
                not_before=later,
                told={},
            )
            return given_back, True
        if refusal:
            self._screen.say(job.job_id, refusal)
            ended = registry.finish(
                job.job_id,
                Status.CANCELLED,
                attempt=job.attempt,
                reason=Reason.CANCELLED,
                detail=refusal,
                told={},
            )
            return ended, False
        attempt = self._attempt(registry, job, profile, terms)
        attempt.counterpart = counterpart
        after = attempt.run()
        counterpart.ended(after or registry.get(job.job_id))
        return after, attempt.could_not_begin

    def _attempt(self, registry: Registry, job: Job, profile: Profile, terms: Terms) -> Attempt:
        return Attempt(registry, job, profile, terms, self._screen, self._stops.hands_back)

    def _sleep(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._stops.may_claim() and time.monotonic() < deadline:
            time.sleep(min(0.1, seconds))


def _nothing(is_stopped: Callable[[], bool]) -> None:
    pass
