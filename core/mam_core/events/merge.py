"""Directory, brokers and looks at everything, merged into one stream of items.

Here is no thread and no wait: the feed brings what its sources have and passes
on what comes out. A record is read once for all that is said about it in one
pass, and told when it differs from what was told before.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice

from mam_core.clock import fine_stamp, parse_stamp
from mam_core.errors import MamError
from mam_core.events import missed
from mam_core.events.drops import DropNotices
from mam_core.events.event import Message
from mam_core.events.inbox import Dropped, Inbox
from mam_core.events.items import Item, JobChanged, Notice, NoticeKind, Origin
from mam_core.events.public_brokers import public_warning
from mam_core.events.reception import Reception
from mam_core.events.sequence import Sequence
from mam_core.events.sightings import Opening, Seen, Sightings
from mam_core.events.subscription import Arrived
from mam_core.records import Job
from mam_core.stores.base import Store
from mam_core.summaries import Unreadable

#: So many records are read before messages are looked at again.
_SLICE = 64
#: An editor empties a file before it writes: what cannot be read is looked at a second time.
_SECOND_LOOK_SEC = 0.1
#: What the registry has under the last numbers that it issued stands at the end of its log.
_RECENT = 64
#: Looking for what it has under older ones may take this share of the time.
_OLD_SHARE = 0.05
#: Records are dated in whole seconds.
_GRAIN_SEC = 2.0


class Merge:
    """All that the feed knows. Used by one thread."""

    def __init__(
        self, store: Store, path: str, reception: Reception, jobs: frozenset[str] | None
    ) -> None:
        self._store = store
        self._reception = reception
        self._sightings = Sightings(store, path, jobs)
        self.inbox = Inbox(self._lookup, begin=self._start_of, history=self._told_before)
        self.sequence = Sequence(store, self.inbox, reception.hears)
        self._drops = DropNotices()
        self._pending: dict[str, tuple[Origin, float]] = {}
        self._doubtful: dict[str, float] = {}
        self._read: dict[str, Seen] = {}  #: in this pass, for messages
        self._parted: list[Item] = []  #: of jobs that turned out to be gone in this pass
        self._began, self._began_at = time.time(), time.monotonic()
        self._rested_at = 0.0  #: when old numbers may be looked for again
        self.heard = 0
        self.trouble: Exception | None = None  #: why the last `work` could not read everything

    def begin(self) -> Iterator[Item]:
        """Everything that is there now is known; only what comes is told."""
        self._began, self._began_at = time.time(), time.monotonic()
        for job in self._sightings.begin():
            yield from self._follow(job)

    def take_opening(self) -> Opening | None:
        return self._sightings.take_opening()

    # -- sources ---------------------------------------------------------------------------

    def hear(self, arrived: Iterable[Arrived]) -> list[Item]:
        """Messages: the event first, then the record that it changed."""
        items: list[Item] = []
        self._read = {}
        judged: list[tuple[Message, Job, float]] = []
        for topic, payload, at in arrived:
            answer = self.inbox.judge(topic, payload)
            items += self._parted
            self._parted = []
            if isinstance(answer, Dropped):
                items += self._dropped(answer, at)
                continue
            job = self._read[answer.event.job_id].readable
            assert job is not None
            judged.append((answer, job, at))
        kept = self._kept_of(judged)
        for message, job, at in judged:
            event = message.event
            if (event.job_id, event.seq) not in kept:
                continue  # what the registry has of it is told, if it is still to be told
            answer = self.inbox.believe(message, job, kept[event.job_id, event.seq])
            if isinstance(answer, Dropped):
                items += self._dropped(answer, at)
                continue
            self.heard += 1
            items += self.sequence.arrived(answer, job, at)
        read, self._read = self._read, {}
        return items + self._tell(read.values(), Origin.BROKER, time.monotonic())

    def changed(self, stems: Iterable[str], at: float) -> None:
        """The directory says that these records changed; they are read in `work`."""
        for stem in stems:
            if self._sightings.wants(stem):
                self._pending[stem] = (Origin.DIRECTORY, at)

    def rescan(self) -> None:
        """Look at everything; what differs is read in `work`.

        Raises `MamError` or OSError when the registry cannot be read.
        """
        now = time.monotonic()
        for job_id in self._sightings.changed():
            self._pending.setdefault(job_id, (Origin.RESCAN, now))

    # -- work ------------------------------------------------------------------------------

    def work(self) -> list[Item]:
        """Read a slice of what is pending, and whatever else is due."""
        now = time.monotonic()
        for job_id, due in list(self._doubtful.items()):
            if due <= now:
                self._pending.setdefault(job_id, (Origin.DIRECTORY, now))
        by_origin: dict[tuple[Origin, float], list[Seen]] = {}
        self.trouble = None
        try:
            for job_id in list(islice(self._pending, _SLICE)):
                seen = self._sightings.read(job_id)
                by_origin.setdefault(self._pending.pop(job_id), []).append(seen)
        except (MamError, OSError) as problem:
            self._pending.clear()  # the registry is gone; when it is back, all is read anew
            self.trouble = problem
        items: list[Item] = []
        for (origin, at), read in by_origin.items():
            items += self._tell(read, origin, at)
        return items + self.sequence.tick() + self._drops.due(now)

    @property
    def is_busy(self) -> bool:
        return bool(self._pending)

    @property
    def next_due(self) -> float | None:
        times = [self.sequence.next_due, self._drops.next_due, *self._doubtful.values()]
        return min((due for due in times if due is not None), default=None)

    # -- inside ----------------------------------------------------------------------------

    def _dropped(self, dropped: Dropped, at: float) -> list[Notice]:
        return [] if dropped.expected else self._drops.of(dropped, at)

    def _kept_of(
        self, judged: Iterable[tuple[Message, Job, float]]
    ) -> dict[tuple[str, int], Message | None]:
        """What the registry has under the numbers of these messages; None: nothing.

        The recent ones are found at once. An old one may take a look through the whole log, which
        a sender of such must not be able to ask for all the time: while that rests, a number that
        has come is a repeat, and any other is left out.
        """
        began = time.monotonic()
        is_rested = began >= self._rested_at
        kept: dict[tuple[str, int], Message | None] = {}
        wanted: dict[str, set[int]] = {}
        has_old = False
        for message, job, _ in judged:
            place = job.job_id, message.event.seq
            is_recent = message.event.seq > job.last_seq - _RECENT
            if not is_recent and not self.inbox.is_newest(message, job):
                has_old = True
                if not is_rested:
                    if self.inbox.has_come(message, job):
                        kept[place] = None
                    continue
            kept[place] = None
            wanted.setdefault(job.job_id, set()).add(message.event.seq)
        for job_id, messages in missed.find(self._store, wanted).items():
            kept |= {(job_id, one.event.seq): one for one in messages}
        if has_old and is_rested:
            now = time.monotonic()
            self._rested_at = now + (now - began) / _OLD_SHARE
        return kept

    def _tell(self, seen: Iterable[Seen], origin: Origin, at: float) -> list[Item]:
        """Records that were read: the events that they show first, then those that are news."""
        everything = [one for one in seen if not self._is_doubtful(one)]
        items = self.sequence.recorded([one.readable for one in everything if one.readable])
        items += self._part([one.job_id for one in everything if one.job is None], origin)
        for one in everything:
            if not self._sightings.is_news(one):
                continue
            if one.readable is not None:
                items += self._follow(one.readable)
            elif one.job is None:
                self._reception.leave(one.job_id)
                items += self.sequence.forget(one.job_id)
            items.append(JobChanged(one.job_id, one.job, origin, at))
        return items

    def _part(self, gone: list[str], origin: Origin) -> list[Item]:
        """The last events of jobs that were cleaned away before we had heard everything of them."""
        owing = [job_id for job_id in gone if self._owes(job_id)]
        items = self.sequence.part({each: self._sightings.start_of(each) or 0 for each in owing})
        if origin is Origin.DIRECTORY:
            # Its file came and went between two looks.
            unseen = [job_id for job_id in gone if not self._sightings.is_known(job_id)]
            items += self.sequence.part_unseen(unseen, fine_stamp(self._beginning()))
        return items

    def _owes(self, job_id: str) -> bool:
        """We did not see it end, or wait for some of its events.

        All others have told everything: a clean of thousands costs no look into their logs.
        """
        return self._sightings.was_live(job_id) or self.sequence.is_waiting_for(job_id)

    def _is_doubtful(self, seen: Seen) -> bool:
        if not isinstance(seen.job, Unreadable):
            self._doubtful.pop(seen.job_id, None)
            return False
        if self._doubtful.pop(seen.job_id, None) is not None:
            return False
        self._doubtful[seen.job_id] = time.monotonic() + _SECOND_LOOK_SEC
        return True

    def _follow(self, job: Job) -> Iterator[Item]:
        problem = self._reception.follow(job)
        if problem is not None:
            yield Notice(NoticeKind.NO_BROKER, job.job_id, problem, time.monotonic())
        host = self._reception.exposed(job)
        if host is not None and (warning := public_warning(host)):
            yield Notice(NoticeKind.PUBLIC_BROKER, None, warning, time.monotonic())

    def _lookup(self, job_id: str) -> Job | None:
        if job_id not in self._read:
            try:
                self._read[job_id] = self._sightings.read(job_id)
            except (MamError, OSError):
                return None  # no registry, no job; on its return the record tells what happened
            job = self._read[job_id].readable
            if job is not None:
                self.inbox.recorded(job)
            elif self._read[job_id].job is None and self._owes(job_id):
                # Before the message is judged: it may be one of its last.
                now = time.monotonic()
                self._parted += self._tell([self._read[job_id]], Origin.BROKER, now)
        return self._read[job_id].readable

    def _start_of(self, job: Job) -> int:
        """How far the job's events are older than we are, and so not missed."""
        start = self._sightings.start_of(job.job_id)
        if start is not None:
            return start
        try:
            is_new = parse_stamp(job.created_at) >= self._beginning() - _GRAIN_SEC
        except ValueError:
            is_new = False
        return 0 if is_new else job.last_seq

    def _beginning(self) -> float:
        """By the wall clock, as it goes now: what is registered after it was set back is new."""
        return min(self._began, time.time() - (time.monotonic() - self._began_at))

    def _told_before(self, job: Job) -> list[int]:
        """Of a signed job: the events that a broker had taken before we began."""
        began = fine_stamp(self._began)
        start = self._start_of(job)
        return [
            message.event.seq
            for message, moment in missed.published(self._store, job.job_id)
            if moment < began and message.event.seq <= start
        ]
