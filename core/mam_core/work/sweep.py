"""The sweep: jobs whose worker is gone come back, and jobs that nobody watches end in time.

Any long-lived process does it, several at once. A job is taken from its worker
only when it is known that nothing of the attempt is left; what is left is ended
first. Every change holds only for the record that was looked at, so that a
worker which renews its lease in that moment keeps its job.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from mam_core import changes
from mam_core.audit import AuditEvent
from mam_core.clock import Clock
from mam_core.errors import JobNotFound, MamError, TransitionRefused, UnreadableRecord
from mam_core.leases import FENCED_SEC
from mam_core.pace import paced
from mam_core.record_parts import Lease
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.work.drowsiness import Drowsiness
from mam_core.work.marks import SUPERVISOR_SEC, AttemptMark, end_leftovers
from mam_core.work.orders import GRACE_SEC
from mam_core.work.overdue import overdue
from mam_core.work.witnesses import Node, Witness, tidy, traces_of

_RUNNING = Query(frozenset({Status.RUNNING}))
#: What the ending of processes may take beyond the grace before the next look is left to the
#: next pass: long enough that a supervisor which does not answer is killed in this one, since a
#: command that ends soon makes no other.
PATIENCE_SEC = SUPERVISOR_SEC + 1.0
#: What cannot be known now is not known five seconds later: looking costs a scan of all processes.
_STALE_SEC = 60.0
#: How soon it is noticed that the process is to end while processes are being ended.
_LOOK_SEC = 0.1
#: So many attempts are ended at once: each looks at every process of the host.
_AT_ONCE = 8


class Act(StrEnum):
    """What became of a job."""

    REQUEUED = "requeued"
    ENDED = "ended"  #: as error
    CANCELLED = "cancelled"  #: as a person had wished
    ENDING = "ending"  #: its processes are being ended
    STALE = "stale"  #: nothing: whether anything is left cannot be known from here


class Swept(NamedTuple):
    """One job that a pass had something to do with."""

    job_id: str
    attempt: int
    act: Act
    witness: Witness
    words: str


class _Lost(NamedTuple):
    """A job that its worker has lost, with what is left of it."""

    job: Job
    witness: Witness
    words: str
    mark: AttemptMark | None = None  #: of processes that are not gone yet


_Attempt = tuple[str, int]


class Sweep:
    """One process's part in it. Called again and again, from one thread."""

    def __init__(
        self,
        registry: Registry,
        *,
        grace_sec: float = GRACE_SEC,
        clock: Clock | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
        jobs: Collection[str] | None = None,
    ) -> None:
        """`is_stopped`: a pass is to end soon, and the next sweep goes on with what it began.
        `jobs`: a person asked for these, and for no others."""
        self._registry = registry
        self._jobs = jobs
        self._is_stopped = is_stopped
        self._grace_sec = grace_sec
        self._clock = clock or registry.clock
        self._node = Node(registry.node, self._clock)
        self._first_seen: dict[_Attempt, float] = {}
        self._look_again_at: dict[_Attempt, float] = {}
        self._ran: set[str] = set()  #: the jobs that ran at the last pass
        self._told: set[_Attempt] = set()  #: those of which it was said that they are stale
        self._threads: dict[_Attempt, threading.Thread] = {}
        self._drowsiness = Drowsiness(self._clock)

    def once(self) -> list[Swept]:
        """One pass. Raises what the registry raises when it cannot be asked or written to.

        Takes no longer than the grace and a little, and that only where processes must be ended.
        """
        jobs = list(self._running())
        self._forget_all_but({_name(job) for job in jobs})
        self._drowsiness.wake({_name(job) for job in jobs})
        self._notice_edits(jobs)
        swept: list[Swept] = []
        leftovers: list[_Lost] = []
        for job in jobs:
            with suppress(TransitionRefused, JobNotFound, UnreadableRecord):  # somebody was first
                found = self._look(job)
                if isinstance(found, _Lost) and found.mark is not None:
                    leftovers.append(found)
                elif isinstance(found, _Lost):
                    swept.append(self._give_up(found))
                elif found is not None:
                    swept.append(found)
        swept += self._end(leftovers)
        self._drowsiness.doze()
        if any(one.act not in (Act.ENDING, Act.STALE) for one in swept):
            with suppress(OSError, MamError):
                self._registry.store.outbox.ring()
        return swept

    def _notice_edits(self, jobs: Sequence[Job]) -> None:
        """Of jobs that run, and of those that ended since the last pass."""
        running = {job.job_id for job in jobs}
        edited = {job.job_id for job in jobs if job.is_edited}
        self._registry.notice_all((self._ran - running) | edited)
        self._ran = running

    # -- looking ---------------------------------------------------------------------------

    def _running(self) -> Iterator[Job]:
        """Whole records of those that run, and of no others."""
        for summary in self._registry.store.find(_RUNNING)[0]:
            if self._jobs is not None and summary.job_id not in self._jobs:
                continue
            with suppress(JobNotFound, UnreadableRecord):
                job = self._registry.get(summary.job_id)
                if job.status is Status.RUNNING:
                    yield job

    def _look(self, job: Job) -> _Lost | Swept | None:
        lease = job.lease
        if lease is None:
            return self._look_at_clocks(job)
        if self._node.was_restarted(lease):
            return self._look_at_boot(job, lease)
        if self._node.is_stranger(lease):
            return self._look_from_afar(job, lease)
        expired = self._registry.lease_expired(lease)
        if not expired or self._may_have_slept(job, lease):
            lost = self._look_at_worker(job, lease)
            if lost is not None or not expired or not self._node.sees_no_worker(lease):
                return lost  # else it sleeps no more: there is no such process
        return self._look_at_leftovers(job, lease)

    def _look_at_boot(self, job: Job, lease: Lease) -> _Lost | Swept | None:
        """A lease of our host's name and of another boot. Where hosts share the store two of them
        may have one name: only a mark that is kept here tells that it was ours."""
        if lease.store_time is not None:
            mark = traces_of(self._registry.store.audit, job).mark
            if mark is None or mark.supervisor.boot_id != lease.boot_id:
                return self._look_from_afar(job, lease)
        return _Lost(job, Witness.BOOT, "its host was restarted")

    def _may_have_slept(self, job: Job, lease: Lease) -> bool:
        """Its worker did not renew the lease, and is perhaps about to."""
        return self._drowsiness.forgives(_name(job), lease, self._registry.lease_age(lease))

    def _look_at_worker(self, job: Job, lease: Lease) -> _Lost | None:
        """The lease still runs: only a worker that is surely dead, with all it started, counts."""
        if not self._node.sees_no_worker(lease):
            return None
        mark = traces_of(self._registry.store.audit, job).mark
        if mark is None or not self._node.has_lost_worker(lease, mark):
            return None
        if not self._node.is_gone(mark):
            return None  # its supervisor is about to end it
        return _Lost(job, Witness.PROCESSES, "its worker and all that it ran are gone")

    def _look_from_afar(self, job: Job, lease: Lease) -> _Lost | Swept | None:
        """Another host's job. By a clock that we share it is known when that host must have ended
        it (see `leases.fence_sec`); without one we can only say that it does not get on."""
        if lease.store_time is None:
            if not self._node.seems_expired(lease):
                return None
            words = f"the lease of {lease.owner} seems to have expired"
            return self._leave_alone(job, f"{words}; its processes cannot be seen from here")
        since = self._registry.lease_age(lease)
        if since is None or since <= lease.ttl_sec + FENCED_SEC:
            return None
        if self._may_have_slept(job, lease):
            return None
        words = f"{lease.node} has not renewed its lease for {since:.0f} s"
        return _Lost(job, Witness.LEASE, f"{words}, and ends by itself what it cannot renew")

    def _look_at_leftovers(self, job: Job, lease: Lease) -> _Lost | Swept | None:
        """The lease is over. What it held must be gone before anybody else gets it."""
        now = self._clock.since_boot()
        if now < self._look_again_at.get(_name(job), now):
            return None
        ago = f"the lease of {lease.owner} has expired"
        mark, unknown = traces_of(self._registry.store.audit, job)
        gone = self._node.is_gone(mark) if mark is not None else None
        if gone:
            return _Lost(job, Witness.LEASE, f"{ago}, and nothing of it is left")
        if gone is None and lease.store_time is not None:
            # Another folder or container of this host's name may run it, and ends it in time.
            return self._look_from_afar(job, lease)
        if mark is None and not unknown:
            return _Lost(job, Witness.LEASE, f"{ago}, and it had started nothing")
        if gone is None:
            self._look_again_at[_name(job)] = now + _STALE_SEC
            where = unknown or "its processes cannot be seen from here"
            return self._leave_alone(job, f"{ago}; {where}")
        return _Lost(job, Witness.LEASE, ago, mark)

    def _look_at_clocks(self, job: Job) -> Swept | None:
        now = self._clock.now()
        first_seen = self._first_seen.setdefault(_name(job), now)
        due = overdue(job, self._registry.store, now, first_seen)
        if due is None:
            return None
        self._registry.finish(
            job.job_id,
            Status.ERROR,
            attempt=None,
            reason=due.reason,
            detail=due.words,
            told={"witness": Witness.CLOCK},
            seen=job,
        )
        return _swept(job, Act.ENDED, Witness.CLOCK, due.words)

    # -- acting ----------------------------------------------------------------------------

    def _give_up(self, lost: _Lost) -> Swept:
        """Back into the queue; the registry ends what was cancelled or lost too often."""
        job = self._registry.requeue(
            lost.job.job_id,
            Reason.LOST,
            attempt=None,
            detail=lost.words,
            told={"witness": lost.witness},
            seen=lost.job,
        )
        tidy(self._registry.store.audit, lost.job)
        act = _ACTS.get(job.status, Act.REQUEUED)
        return _swept(lost.job, act, lost.witness, job.detail or lost.words)

    def _leave_alone(self, job: Job, words: str) -> Swept | None:
        """Said once, by whoever sees it first."""
        if _name(job) in self._told:
            return None
        self._told.add(_name(job))
        audit = self._registry.store.audit
        if not any(_is_about(line, AuditEvent.STALE, job) for line in audit.events(job.job_id)):
            with self._registry.changing(job.job_id, seen=job) as (tx, _):
                line = self._registry.note(AuditEvent.STALE, attempt=job.attempt, why=words)
                tx.note(job.job_id, line)
        return _swept(job, Act.STALE, Witness.LEASE, words)

    def _end(self, leftovers: list[_Lost]) -> Iterator[Swept]:
        """End what is left, all at once; who is gone by then is given up, the others next time."""
        condemned: list[_Lost] = []
        for lost in leftovers:
            with suppress(TransitionRefused, JobNotFound, UnreadableRecord):
                condemned.append(self._condemn(lost))
        deadline = time.monotonic() + self._grace_sec + PATIENCE_SEC
        for lost in condemned:
            if thread := self._threads.get(_name(lost.job)):
                self._await(thread, deadline)
        for lost in condemned:
            with suppress(TransitionRefused, JobNotFound, UnreadableRecord):
                if lost.mark is not None and self._node.is_gone(lost.mark):
                    words = f"{lost.words}, and what it ran was ended"
                    yield self._give_up(lost._replace(words=words))
                else:
                    yield _swept(lost.job, Act.ENDING, lost.witness, lost.words)

    def _await(self, thread: threading.Thread, deadline: float) -> None:
        while thread.is_alive() and not self._is_stopped():
            if (left := deadline - time.monotonic()) <= 0:
                return
            thread.join(min(left, paced(_LOOK_SEC)))

    def _condemn(self, lost: _Lost) -> _Lost:
        """Write down that its processes are ended, then end them in a thread of their own.

        In this order: where the registry cannot be written to, its workers cannot renew their
        leases either, and nothing would be gained by ending what they run.
        """
        name = _name(lost.job)
        thread = self._threads.get(name)
        if thread is not None and thread.is_alive():
            return lost
        if sum(one.is_alive() for one in self._threads.values()) >= _AT_ONCE:
            return lost
        assert lost.mark is not None
        with self._registry.changing(lost.job.job_id, seen=lost.job) as (tx, job):
            new = changes.touched(job, self._clock.now())
            tx.put(new, self._registry.line(AuditEvent.STALE, new, why=f"{lost.words}: ending it"))
        self._threads[name] = thread = threading.Thread(
            target=end_leftovers, args=(lost.mark, self._grace_sec), name="mam-end", daemon=True
        )
        thread.start()
        return lost._replace(job=new)

    def _forget_all_but(self, running: set[_Attempt]) -> None:
        for known in (self._first_seen, self._look_again_at, self._threads):
            for name in known.keys() - running:
                del known[name]
        self._told &= running


#: What `requeue` made of a job that is not pending again.
_ACTS = {Status.ERROR: Act.ENDED, Status.CANCELLED: Act.CANCELLED}


def _name(job: Job) -> _Attempt:
    return job.job_id, job.attempt


def _swept(job: Job, act: Act, witness: Witness, words: str) -> Swept:
    return Swept(job.job_id, job.attempt, act, witness, words)


def _is_about(line: dict[str, object], event: AuditEvent, job: Job) -> bool:
    return line.get("event") == event and line.get("attempt") == job.attempt
