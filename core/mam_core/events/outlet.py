"""Where the feed leaves its items and one consumer takes them: bounded, and nothing goes stale.

Of a job's record only the newest version waits. Events are kept until there are
too many; then the oldest go, and a notice says so (they are in the audit log).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable

from mam_core.events.items import EventHeard, Item, JobChanged, Notice, NoticeKind

MAX_EVENTS = 20_000
MAX_NOTICES = 2_000
MAX_BYTES = 64 * 1024 * 1024

_Key = tuple[str, object]
_LOST: _Key = ("lost", None)


class Outlet:
    """Items in the order in which they were told."""

    def __init__(self, *, max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._ready = threading.Condition()
        self._items: dict[_Key, Item] = {}
        self._events: deque[_Key] = deque()  #: oldest first; so are the notices
        self._notices: deque[_Key] = deque()
        self._bytes = self._lost = self._told = 0
        self._closed = False

    def put(self, items: Iterable[Item]) -> None:
        with self._ready:
            for item in items:
                self._put(item)
            if self._items:
                self._ready.notify()

    def take(self, timeout: float | None) -> list[Item]:
        """Everything that waits; an empty list when nothing came within the time."""
        with self._ready:
            if not self._items and not self._closed:
                self._ready.wait_for(lambda: self._items or self._closed, timeout)
            items = list(self._items.values())
            self._items = {}
            self._events.clear()
            self._notices.clear()
            self._bytes = self._lost = 0
            return items

    def close(self) -> None:
        with self._ready:
            self._closed = True
            self._ready.notify()

    def _put(self, item: Item) -> None:
        if isinstance(item, JobChanged):
            # To the end: a record is never told before the events that led to it.
            self._items.pop(("job", item.job_id), None)
            self._items["job", item.job_id] = item
            return
        self._told += 1
        key = ("told", self._told)
        self._items[key] = item
        if isinstance(item, EventHeard):
            self._events.append(key)
            self._bytes += _weight(item)
            while len(self._events) > self._max_events or self._bytes > self._max_bytes:
                self._drop_oldest()
        else:
            self._notices.append(key)
            if len(self._notices) > MAX_NOTICES:
                del self._items[self._notices.popleft()]

    def _drop_oldest(self) -> None:
        item = self._items.pop(self._events.popleft())
        assert isinstance(item, EventHeard)
        self._bytes -= _weight(item)
        self._lost += 1
        text = f"{self._lost} events came faster than they were shown: the audit log has them"
        self._items[_LOST] = Notice(NoticeKind.OVERFLOW, None, text, time.monotonic())


def _weight(item: EventHeard) -> int:
    """About what it takes to keep; texts are what can be long."""
    data = item.event.data
    return 500 + len(item.event.detail) + (len(str(data)) if data else 0)
