"""The relay: takes posts out of the outbox, hands them to their brokers, tells the audit log.

Of each job in order, at least once: a post is removed when a broker has taken
it and the audit log says so. A relay that is killed leaves posts behind which
the broker may have; the next one sends them again, unless the audit log already
tells of them, so that history has every event once.

One at a time, by the outbox's lock. Each broker has a `Lane` of its own, so that
one that is down or far away keeps nobody else waiting.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple, Protocol

from mam_core.audit import warn
from mam_core.disk import explain
from mam_core.errors import MamError, RegistryMissing
from mam_core.events.connecting import Dial
from mam_core.events.event import BadEvent, Drop, parse
from mam_core.events.lane import Lane, Report
from mam_core.events.lanes import Lanes, Way, way_to, where
from mam_core.events.post import Post
from mam_core.events.tellings import Tellings
from mam_core.pace import paced
from mam_core.registry import Registry

#: Taken from the outbox at once; asked again when the lanes have no more than `_LOW` left.
_LOAD = 500
_LOW = 250

#: Without any ring: how often stop flags are looked at, and how often the outbox.
_LOOK_SEC = 0.5
_ASK_SEC = 5.0
#: Another relay may end at any time.
_TRY_SEC = 1.0
_DEBT_LOOK_SEC = 0.1


class Stop(Protocol):
    """How whoever runs a relay ends it: a `threading.Event`, or what notes a signal."""

    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Left(NamedTuple):
    """How a relay found the outbox when it ended."""

    posts: int  #: still there, at least; 0: it is empty
    trouble: str  #: why, as far as that is known


class _Trip:
    """What is on its way of one job."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.contents: dict[int, dict[str, Any]] = {}  #: by number
        self.last = 0


class Relay:
    """Works in the thread that calls `run` or `drain`."""

    def __init__(self, registry: Registry, dial: Dial) -> None:
        self._store = registry.store
        self._outbox = registry.store.outbox
        self._tellings = Tellings(registry.store.audit, self._outbox, registry.clock)
        # An outbox of its own: it is rung by other threads while this one reads.
        self._lanes = Lanes(dial, registry.store.outbox.ring)
        self._trips: dict[str, _Trip] = {}
        self._held: dict[Way, set[str]] = {}  #: jobs whose broker is not there now
        self._said: dict[Way, str] = {}
        self._moved_at = 0.0  #: when a broker last took something, or we began
        self._asked_at = 0.0
        self._is_asked = True

    def run(self, stop: Stop) -> None:
        """Until `stop`: for whoever lives long. Takes over when another relay ends."""
        said = ""
        while not stop.is_set():
            try:
                with self._outbox.relaying() as mine:
                    if mine:
                        said = ""
                        self._work(stop, lambda: False)
            except RegistryMissing:
                pass  # somebody will make it, or nobody has anything to say
            except (OSError, MamError) as problem:
                # The folder may be gone or the disk full, and come back.
                if (words := _words(problem)) != said:
                    said = words
                    warn(f"events are not sent: {said}")
            stop.wait(paced(_TRY_SEC))

    def drain(self, stop: Stop, *, patience_sec: float, linger_sec: float = 0.0) -> Left | None:
        """Until the outbox is empty, or no broker has taken anything for so long.

        None when another relay is at work: what there is to do, it does. Raises `RegistryMissing`
        where there is no registry yet.
        """
        while True:
            with self._outbox.relaying() as mine:
                if not mine:
                    return None
                trouble = self._work(stop, self._ending(patience_sec, linger_sec))
            # Bell and lock are gone: who posts from now on starts another relay. Who posted before
            # that may have met our lock, and relies on this last look.
            if stop.is_set() or not self._outbox.posts(1, self._passed_over()):
                return Left(len(self._outbox.posts(_LOAD)), trouble)

    # -- the work --------------------------------------------------------------------------

    def _work(self, stop: Stop, is_over: Callable[[], bool]) -> str:
        """As the holder of the lock. The answer says what hindered."""
        self._tellings.forget()
        self._held.clear()
        self._moved_at = time.monotonic()
        self._is_asked = True
        self._mend()
        try:
            while not stop.is_set():
                if not self._outbox.beat():
                    return "another relay has taken over"
                self._feed()
                for way, lane in self._lanes:
                    self._heed(way, lane, lane.work())
                self._outbox.tell_lanes(self._lanes.reached())
                if self._tellings.pay():
                    self._is_asked = True
                if is_over():
                    break
                self._is_asked |= self._outbox.wait(self._pause(), self._lanes.watched())
                if time.monotonic() - self._asked_at > _ASK_SEC:
                    self._is_asked = True
                    self._mend()
                self._close_useless_lanes()
            return self._lanes.trouble(self._held)
        finally:
            with suppress(OSError, MamError):
                for way, _ in self._lanes:
                    self._close(way)  # and hear what was taken at the last moment
            self._trips.clear()

    def _mend(self) -> None:
        """A publisher that was killed half-way left a number without its post.

        Whoever takes the registry's lock next finishes that; perhaps nobody else ever does.
        """
        with suppress(OSError, MamError), self._store.transaction():
            pass

    def _has_work(self) -> bool:
        """Somebody posted, or may have, and the lanes have little to do."""
        return self._is_asked and sum(len(t.contents) for t in self._trips.values()) <= _LOW

    def _pause(self) -> float:
        if self._has_work() or self._lanes.is_impatient():
            return 0.0
        return paced(_DEBT_LOOK_SEC if self._tellings.is_owing or self._held else _LOOK_SEC)

    def _ending(self, patience_sec: float, linger_sec: float) -> Callable[[], bool]:
        """When a relay that is not to live long has done its work, or cannot do it."""
        idle_since: float | None = None

        def is_over() -> bool:
            nonlocal idle_since
            now = time.monotonic()
            if self._tellings.is_owing:
                return False  # that ends by itself
            if self._trips or self._held or self._is_asked:
                idle_since = None
                return now - self._moved_at > patience_sec
            idle_since = idle_since or now
            return now - idle_since >= linger_sec

        return is_over

    def _feed(self) -> None:
        """Bring posts from the disk to the lanes, as long as these have little to do."""
        if not self._has_work():
            return
        past = {job_id: trip.last for job_id, trip in self._trips.items()}
        past |= self._passed_over()
        self._asked_at = time.monotonic()
        posts = self._outbox.posts(_LOAD, past)
        self._is_asked = len(posts) == _LOAD
        later: set[str] = set()
        for post in posts:
            if self._tellings.knows(post):
                self._is_asked = True
                continue
            try:
                content = _checked(post)
            except BadEvent as problem:
                self._outbox.set_aside(post, problem.message)
                continue
            lane = None if post.job_id in later else self._way_open(post)
            if lane is None:
                later.add(post.job_id)
                continue
            trip = self._trips.setdefault(post.job_id, _Trip(way_to(post.broker)))
            trip.contents[post.seq] = content
            trip.last = post.seq
            lane.offer(post)

    def _passed_over(self) -> dict[str, int]:
        """Jobs of which nothing is taken from the outbox now."""
        jobs = chain(self._tellings.owed_jobs, *self._held.values())
        return dict.fromkeys(jobs, sys.maxsize)

    def _way_open(self, post: Post) -> Lane | None:
        """Its lane, if that is up and nothing of its job is on another: one after the other."""
        way = way_to(post.broker)
        trip = self._trips.get(post.job_id)
        if trip is not None and trip.way != way:
            return None
        lane = self._lanes.use(post.broker)
        if lane is None or not lane.is_up:
            self._hold(way, [post])
            return None
        return lane

    def _heed(self, way: Way, lane: Lane, report: Report) -> None:
        if report.taken:
            self._moved_at = time.monotonic()
            self._said.pop(way, None)  # what comes now is another story
            self._settle(report.taken)
        for post, why in report.hopeless:
            self._outbox.set_aside(post, why)
            self._arrived(post)
        self._hold(way, report.returned)
        if lane.is_up:
            self._free(way)
        # A connection that is lost while nothing waits for it is nobody's business.
        if lane.trouble and way in self._held and lane.trouble != self._said.get(way):
            self._said[way] = lane.trouble
            warn(f"events wait for the broker {where(way)}: {lane.trouble}")

    def _settle(self, taken: Iterable[Post]) -> None:
        by_job: dict[str, list[tuple[Post, dict[str, Any]]]] = {}
        for post in taken:
            content = self._arrived(post)
            by_job.setdefault(post.job_id, []).append((post, content))
        for job_id, pairs in by_job.items():
            if not self._outbox.beat():
                return  # the new relay sends them again, and reports it
            self._tellings.tell(job_id, pairs)

    def _arrived(self, post: Post) -> dict[str, Any]:
        """It is no longer on its way; the answer is its content."""
        trip = self._trips[post.job_id]
        content = trip.contents.pop(post.seq)
        if not trip.contents:
            del self._trips[post.job_id]
            self._is_asked = True  # a later one may have waited for it
        return content

    def _hold(self, way: Way, posts: Iterable[Post]) -> None:
        """They did not go: read again from the disk once the broker is back."""
        for post in posts:
            self._trips.pop(post.job_id, None)
            self._held.setdefault(way, set()).add(post.job_id)

    def _free(self, way: Way) -> None:
        if self._held.pop(way, None):
            self._is_asked = True

    def _close_useless_lanes(self) -> None:
        busy = {trip.way for trip in self._trips.values()}
        if useless := self._lanes.useless(self._held, busy):
            for way in useless:
                self._close(way)
            for way in [way for way in self._held if way not in self._lanes]:
                self._free(way)  # they stand in line for the room there is now

    def _close(self, way: Way) -> None:
        lane = self._lanes.remove(way)
        self._heed(way, lane, lane.close())


def _words(problem: OSError | MamError) -> str:
    if isinstance(problem, MamError):
        return problem.message
    return explain(problem, f"cannot use {problem.filename or 'the folder'} of the outbox").message


def _checked(post: Post) -> dict[str, Any]:
    """The event that it carries, which is the one that its name says; raises `BadEvent`."""
    message = parse(post.payload)
    event = message.event
    if (event.job_id, event.seq) != (post.job_id, post.seq):
        raise BadEvent(Drop.MISPLACED, "it carries another event")
    if not 0 < post.broker.port < 65536:
        raise BadEvent(Drop.MALFORMED, f"{post.broker.port} is no port")
    return message.content
