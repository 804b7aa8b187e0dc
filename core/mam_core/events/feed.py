"""The feed: everything that happens in a registry, as one stream of items.

The directory is watched, the brokers are listened to, and now and then
everything is looked at. Any one of the three may be missing: without a broker
the records tell, and events are read from the outbox and the audit log; without
a watch the looks do. No record is ever made or changed here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mam_core.errors import MamError
from mam_core.events.event import Drop
from mam_core.events.items import EventHeard, Item, JobChanged, Notice, NoticeKind, Origin
from mam_core.pace import PARTING_SEC, paced_retry
from mam_core.record_parts import Broker

if TYPE_CHECKING:
    from mam_core.events.client import Address, Client
    from mam_core.events.reception import Line, Offline
    from mam_core.events.sightings import Opening
    from mam_core.registry import Registry

__all__ = [
    "EventHeard",
    "Feed",
    "FeedState",
    "Item",
    "JobChanged",
    "Notice",
    "NoticeKind",
    "Origin",
]

RESCAN_SEC = 30.0
#: Looking at everything may take this share of the time, however many jobs there are.
_RESCAN_SHARE = 0.01
#: The same for looks that something calls for: a broker that comes and goes calls often.
_CALLED_SHARE = 0.1
#: Without a watch, or without a registry, it is looked for more often.
_BLIND_SEC = 2.0


class FeedState(NamedTuple):
    """How the feed stands; times are `time.monotonic()`."""

    broker_up: bool | None  #: None: there is none, or the first try is still going on
    broker_since: float
    broker_text: str
    directory_up: bool
    directory_since: float
    directory_text: str
    heard: int
    filled: int
    dropped: Mapping[Drop, int]
    blind: str  #: why the records cannot be read now; empty: they can, watched or not
    public: tuple[str, ...] = ()  #: brokers of live jobs where anybody can read and forge
    offline: tuple[Offline, ...] = ()  #: other brokers of live jobs that do not answer


class Feed:
    """A context manager: what happens after it was entered is told by `take`, to one consumer.

    `registry` is read, and closed, on the feed's own thread: give it one of its own. `connect`
    makes a client that knows where the usual broker is (`connect_async`) and is called anew for
    every connection; `connect_to` does so for the broker that a record names. Without `connect`
    the feed works from the directory alone. `jobs` narrows it to these. In a stream of news so
    long as `pace_sec` lies between two passes, each of which wakes three threads and reads a record
    once; a lone one is told at once.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        registry_path: str,
        connect: Callable[[], Client] | None,
        connect_to: Callable[[Broker], Client] | None = None,
        rescan_sec: float = RESCAN_SEC,
        jobs: frozenset[str] | None = None,
        pace_sec: float = 0.0,
    ) -> None:
        # Here, on the thread of whoever listens: others need the names of the items alone.
        from mam_core.events.merge import Merge
        from mam_core.events.outlet import Outlet
        from mam_core.events.reception import Reception

        self._wake = threading.Event()
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._watch = registry.store.watch(self._wake.set)
        self._reception = Reception(connect, connect_to, self._wake.set, jobs)
        self._store = registry.store
        self._merge = Merge(registry.store, registry_path, self._reception, jobs)
        self._outlet = Outlet()
        self._rescan_sec = rescan_sec
        self._rescan_at = 0.0
        self._earliest = 0.0
        self._next_at = 0.0
        self._pace_sec = pace_sec
        self._blind = ""
        self._has_said_blind = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="mam-feed", daemon=True)

    def __enter__(self) -> Feed:
        # The watch first: what changes while the rest begins is seen, and perhaps told twice over.
        self._watch.start()
        self._reception.start()
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(PARTING_SEC)
        self._watch.close()
        self._reception.close()
        self._outlet.close()

    def await_brokers(self, timeout: float) -> bool:
        """Until every broker has said that it will tell us, or has failed to; False: not in time.

        For whoever begins something now and wants to hear of it from the first event on. One that
        is down is not waited for: then the registry tells.
        """
        return self._reception.await_answers(timeout)

    def take(self, timeout: float | None = None) -> list[Item]:
        """All items that wait; an empty list when none comes in time, or the feed is closed."""
        items = self._outlet.take(timeout)
        if not items and self._failure is not None:
            raise self._failure
        return items

    def take_opening(self) -> Opening | None:
        """Every job that there was when the feed began: what `take` tells comes on top of it.

        Once and soon, for it is not kept. None when the registry could not be read then, or only
        some jobs are followed.
        """
        return self._merge.take_opening()

    def rescan(self) -> None:
        """Look at everything soon: the operator does not believe what is shown."""
        self._rescan_soon()
        self._wake.set()

    @property
    def state(self) -> FeedState:
        usual, watch = self._reception.usual, self._watch
        return FeedState(
            usual.up if usual else None,
            usual.since if usual else 0.0,
            usual.text if usual else "there is no broker",
            bool(watch.up),
            watch.since,
            watch.text,
            self._merge.heard,
            self._merge.sequence.filled,
            {drop: count for drop in Drop if (count := self._merge.inbox.dropped[drop])},
            self._blind,
            self._reception.public,
            self._reception.offline,
        )

    # -- on the feed's own thread ----------------------------------------------------------

    def _run(self) -> None:
        try:
            self._begin()
            self._ready.set()
            while not self._stop.is_set():
                self._pause()
                self._pace()
                self._wake.clear()
                self._outlet.put(self._listen())
                self._outlet.put(self._look())
        except Exception as problem:
            # Never silent: the consumer meets it at its next `take`.
            self._failure = problem
        finally:
            self._ready.set()
            self._outlet.close()
            self._watch.close()  # first: it asks the store, and would open it anew
            self._store.close()  # here, because its index has a connection for each thread

    def _begin(self) -> None:
        items: list[Item] = []
        if self._reception.usual is None:
            text = "there is no broker: the directory alone is followed"
            items.append(Notice(NoticeKind.NO_BROKER, None, text, time.monotonic()))
        began = time.monotonic()
        try:
            items += self._merge.begin()
        except (MamError, OSError) as problem:
            items += self._go_blind(problem)
        # A folder that was there when we began needs no notice.
        changes = self._watch.drain()
        items += [_lost(sight.text, sight.at) for sight in changes.sights if not sight.up]
        self._merge.changed(changes.stems, began)
        self._plan_rescan(began)
        self._outlet.put(items)

    def _pause(self) -> None:
        if self._merge.is_busy:
            return
        due = [self._rescan_at]
        if (next_due := self._merge.next_due) is not None:
            due.append(next_due)
        self._wake.wait(max(0.0, min(due) - time.monotonic()))

    def _pace(self) -> None:
        """What is read in slices is not held up: between slices messages are looked at."""
        if not self._merge.is_busy:
            self._stop.wait(max(0.0, self._next_at - time.monotonic()))
        self._next_at = time.monotonic() + self._pace_sec

    def _listen(self) -> list[Item]:
        """What came by message; told before anything is looked at, which may take longer."""
        items: list[Item] = []
        drained, lines = self._reception.drain()
        for got in drained:
            if got.arrived:
                items += self._merge.hear(got.arrived)
            if got.lost:
                text = f"{got.lost} messages came faster than they were read"
                items.append(Notice(NoticeKind.OVERFLOW, None, text, time.monotonic()))
                self._rescan_soon()
        return items + [self._turned(line) for line in lines]

    def _look(self) -> list[Item]:
        """What the directory says, and what is due."""
        items = self._look_at_directory()
        began = time.monotonic()
        is_due = began >= self._rescan_at
        try:
            if is_due:
                self._merge.rescan()
                self._plan_rescan(began)
        except (MamError, OSError) as problem:
            return items + self._go_blind(problem)
        told = self._merge.work()
        if self._merge.trouble is not None:
            return items + told + self._go_blind(self._merge.trouble)
        # Only now: where some jobs are followed, it is `work` that reads their records.
        return items + (self._see_again() if is_due else []) + told

    def _turned(self, line: Line) -> Notice:
        """Up: whatever was missed meanwhile is read. Down: messages are not waited for."""
        if line.turn.up:
            self._rescan_soon()
        else:
            self._merge.sequence.hurry()
        kind = NoticeKind.BROKER_UP if line.turn.up else NoticeKind.BROKER_DOWN
        where = "" if line.turn.up else _place(line.broker)  # up: the text names it
        return Notice(kind, None, f"{where}{line.turn.text}", line.turn.at)

    def _look_at_directory(self) -> list[Item]:
        changes = self._watch.drain()
        items: list[Item] = []
        for sight in changes.sights:
            if sight.up:
                items.append(Notice(NoticeKind.DIRECTORY_BACK, None, sight.text, sight.at))
            else:
                items.append(_lost(sight.text, sight.at))
            self._rescan_soon()
        if changes.in_doubt:
            self._rescan_soon()
        self._merge.changed(changes.stems, time.monotonic())
        return items

    def _go_blind(self, problem: Exception) -> list[Item]:
        """The registry cannot be read now: said once, tried again."""
        self._rescan_at = time.monotonic() + paced_retry(_BLIND_SEC)
        known, self._blind = self._blind, str(problem)
        if known == self._blind or not self._watch.up:
            return []  # the watch has said it
        self._has_said_blind = True
        return [_lost(self._blind, time.monotonic())]

    def _see_again(self) -> list[Item]:
        self._blind = ""
        if not self._has_said_blind:
            return []
        self._has_said_blind = False
        text = "the registry can be read again"
        return [Notice(NoticeKind.DIRECTORY_BACK, None, text, time.monotonic())]

    def _rescan_soon(self) -> None:
        self._rescan_at = min(self._rescan_at, self._earliest)

    def _plan_rescan(self, began: float) -> None:
        now = time.monotonic()
        took = now - began
        usual = (
            self._rescan_sec if self._watch.up else min(self._rescan_sec, paced_retry(_BLIND_SEC))
        )
        self._rescan_at = now + max(usual, took / _RESCAN_SHARE)
        self._earliest = now + took / _CALLED_SHARE


def _lost(text: str, at: float) -> Notice:
    return Notice(NoticeKind.DIRECTORY_LOST, None, text, at)


def _place(broker: Address | None) -> str:
    return "" if broker is None else f"{broker[0]}:{broker[1]}: "
