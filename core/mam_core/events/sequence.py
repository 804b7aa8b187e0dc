"""The events of each job in their order, whoever brings them and however they come.

An event is told at once when all before it are known. Where the record says
that there are others before it, these are read from the registry; what is not
there either may still be on its way, so the event waits for a second at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from mam_core.events import missed
from mam_core.events.event import Message
from mam_core.events.inbox import Inbox
from mam_core.events.items import EventHeard, Item, Notice, NoticeKind, Origin
from mam_core.records import Job
from mam_core.stores.base import Store

#: How long messages are waited for before the registry is asked.
PATIENCE_SEC = 1.0
#: What is nowhere is looked for so often, each time after twice the wait; then it is given up
#: until the record changes again.
_TRIES = 5
#: So many are read at a time, and so many wait for those before them.
_MAX_FILL = 1_000
_MAX_HELD = 1_000
#: Reading outbox and audit log may take this share of the time.
_SHARE = 0.05


class _Held(NamedTuple):
    message: Message
    origin: Origin
    at: float


class _Wait:
    """A job of whose events some are missing."""

    __slots__ = ("due", "held", "last_seq", "looked", "tries")

    def __init__(self, due: float) -> None:
        self.due = due
        self.tries = 0
        self.last_seq = 0  #: how far the record says that they go
        self.looked = 0  #: how far they went when they were last looked for in vain
        self.held: dict[int, _Held] = {}


class Sequence:
    """Puts events in order and fills gaps. Answers what is to be told; keeps no thread."""

    def __init__(
        self,
        store: Store,
        inbox: Inbox,
        hears: Callable[[Job], bool],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._inbox = inbox
        self._hears = hears
        self._now = now
        self._waits: dict[str, _Wait] = {}
        #: Up to here nobody is waited for any more: a number that was taken and never used must
        #: not delay every later event.
        self._settled: dict[str, int] = {}
        self._gaps: dict[str, int] = {}
        self._rested = 0.0  #: when the registry may be asked again
        self.filled = 0

    def arrived(self, message: Message, job: Job, at: float) -> list[Item]:
        """A message was accepted; `job` is its record as it is now."""
        event, job_id = message.event, job.job_id
        items = self._late(message, at)
        wait = self._waits.get(job_id)
        if wait is None:
            if not self._awaited(job_id, min(event.seq - 1, job.last_seq)):
                return items + self._tell(_Held(message, Origin.BROKER, at))
            wait = self._wait_for(job)
            wait.due = max(self._now(), self._rested)
        wait.last_seq = max(wait.last_seq, job.last_seq)
        wait.held[event.seq] = _Held(message, Origin.BROKER, at)
        return items + self._release(job_id, everything=len(wait.held) > _MAX_HELD)

    def recorded(self, jobs: Iterable[Job]) -> list[Item]:
        """Records were read: what they say has happened, and nobody told, will be looked for."""
        now = self._now()
        for job in jobs:
            self._inbox.recorded(job)
            if job.last_seq < self._settled.get(job.job_id, 0):
                self._settled[job.job_id] = job.last_seq
            if self._awaited(job.job_id, job.last_seq):
                wait = self._waits.get(job.job_id) or self._wait_for(job)
                wait.last_seq = job.last_seq
                wait.due = min(wait.due, now + (PATIENCE_SEC if self._hears(job) else 0))
        return self.tick()

    def tick(self) -> list[Item]:
        """Look for what is due."""
        now = self._now()
        if now < self._rested:
            return []
        due = [job_id for job_id, wait in self._waits.items() if wait.due <= now]
        return self._fill(due) if due else []

    def hurry(self) -> None:
        """Messages will not come for now: what is waited for is looked for at once."""
        for wait in self._waits.values():
            wait.due = min(wait.due, self._now())

    @property
    def next_due(self) -> float | None:
        if not self._waits:
            return None
        return max(self._rested, min(wait.due for wait in self._waits.values()))

    def is_waiting_for(self, job_id: str) -> bool:
        """Some of its events are missing."""
        return job_id in self._waits

    def part(self, starts: Mapping[str, int]) -> list[Item]:
        """Jobs are gone that nobody had seen end: what the registry has of their events is told.

        There is no later for them, so it is looked for at once, and above the last number that a
        record showed. The numbers say how far their events are older than we are.
        """
        past = {job_id: self._inbox.begun(job_id, start) for job_id, start in starts.items()}
        return self._tell_last(missed.find_after(self._store, past)) if past else []

    def part_unseen(self, job_ids: Iterable[str], since: str) -> list[Item]:
        """The same for jobs that came and went before we saw them; all their events are news."""
        past = dict.fromkeys(job_ids, 0)
        found = missed.find_after(self._store, past, since) if past else {}
        for job_id, messages in found.items():
            self._inbox.begun(job_id, messages[0].event.seq - 1)
        return self._tell_last(found)

    def forget(self, job_id: str) -> list[Item]:
        """The job is gone: what is held of it is told, and nothing more is looked for."""
        items = self._release(job_id, everything=True)
        for known in (self._waits, self._settled, self._gaps):
            known.pop(job_id, None)
        self._inbox.forget(job_id)
        return items

    # -- inside ----------------------------------------------------------------------------

    def _wait_for(self, job: Job) -> _Wait:
        wait = self._waits[job.job_id] = _Wait(self._now() + PATIENCE_SEC)
        wait.last_seq = job.last_seq
        return wait

    def _awaited(self, job_id: str, upto: int) -> bool:
        """Some number up to this one has not come, and may still come."""
        return bool(self._inbox.missing(job_id, upto, 1, self._settled.get(job_id, 0)))

    def _fill(self, job_ids: list[str]) -> list[Item]:
        """Read what is missing, and tell what was found and what waited for it."""
        wanted = {
            job_id: self._inbox.missing(job_id, self._waits[job_id].last_seq, _MAX_FILL)
            for job_id in job_ids
        }
        began = time.monotonic()
        found = missed.find(self._store, {job: seqs for job, seqs in wanted.items() if seqs})
        now = self._now()
        self._rested = now + (time.monotonic() - began) / _SHARE
        items: list[Item] = []
        for job_id, seqs in wanted.items():
            wait = self._waits[job_id]
            messages = found.get(job_id, [])
            filled = self._put(job_id, messages)
            if len(messages) < len(seqs):
                if wait.tries:  # for the second time: it is not on its way any more
                    self._settled[job_id] = wait.looked
                wait.looked = wait.last_seq
                wait.tries += 1
            items += self._release(job_id)
            items += filled
            doublings = 0 if wait.held else wait.tries - 1
            wait.due = now + (PATIENCE_SEC * 2**doublings if wait.tries else 0)
            if wait.tries > _TRIES and not wait.held:
                self._waits.pop(job_id, None)
        return items

    def _tell_last(self, found: Mapping[str, list[Message]]) -> list[Item]:
        items: list[Item] = []
        for job_id, messages in found.items():
            self._waits.setdefault(job_id, _Wait(self._now()))
            filled = self._put(job_id, messages)
            items += self.forget(job_id)
            items += filled
        return items

    def _put(self, job_id: str, messages: list[Message]) -> list[Item]:
        """What was read is held like what came; the answer is what is said about it."""
        now = self._now()
        fresh = [one for one in messages if self._inbox.filled(job_id, one.event.seq)]
        for one in fresh:
            self._waits[job_id].held[one.event.seq] = _Held(one, Origin.REGISTRY, now)
        self.filled += len(fresh)
        return [_filled(job_id, fresh, now)] if fresh else []

    def _release(self, job_id: str, *, everything: bool = False) -> list[Item]:
        """Tell the events that wait for nothing any more, in order."""
        items: list[Item] = []
        wait = self._waits.get(job_id)
        if wait is None:
            return items
        for seq in sorted(wait.held):
            if not everything and self._awaited(job_id, min(seq - 1, wait.last_seq)):
                break
            items += self._tell(wait.held.pop(seq))
        if not wait.held and not self._inbox.missing(job_id, wait.last_seq, 1):
            del self._waits[job_id]
        return items

    def _tell(self, held: _Held) -> list[Item]:
        event = held.message.event
        unheard = self._inbox.unheard_before(event.job_id, event.seq)
        told: list[Item] = [EventHeard(event, held.message.content, held.origin, held.at, unheard)]
        # Said once for a hole, not for each event behind it.
        if unheard != self._gaps.get(event.job_id, 0):
            if unheard > self._gaps.get(event.job_id, 0):
                many = "1 event" if unheard == 1 else f"{unheard} events"
                text = f"{many} of job {event.job_id} before event {event.seq} did not come"
                told.insert(0, Notice(NoticeKind.GAP, event.job_id, text, held.at))
            self._gaps[event.job_id] = unheard
        return told

    def _late(self, message: Message, at: float) -> list[Item]:
        event = message.event
        highest = self._inbox.highest(event.job_id)
        if highest <= event.seq:
            return []
        text = f"event {event.seq} of job {event.job_id} came after event {highest}"
        return [Notice(NoticeKind.LATE, event.job_id, text, at)]


def _filled(job_id: str, messages: list[Message], now: float) -> Notice:
    seqs = [message.event.seq for message in messages]
    if len(seqs) == 1:
        text = f"event {seqs[0]} of job {job_id} came by no message: read from the registry"
    else:
        span = f"{min(seqs)} to {max(seqs)}"
        text = f"{len(seqs)} events of job {job_id} ({span}) came by no message: "
        text += "read from the registry"
    return Notice(NoticeKind.FILLED, job_id, text, now)
