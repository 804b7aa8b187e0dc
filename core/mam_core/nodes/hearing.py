"""What is heard of workers, kept by worker: the newest status, and whether a will was spoken.

One connection serves a single look (`mam nodes`) and a console that stays alike.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from mam_core.nodes.status import (
    BadStatusWord,
    Topics,
    WorkerStatus,
    every_worker,
    home_and_kind,
    topics_in,
)

#: A broker keeps some of many retained words back until others are acknowledged; so long after the
#: last one of them there is none left on its way.
_QUIET_SEC = 0.3
#: What nobody ever subscribed to.
_NOTHING = "mam/nothing"
#: So many are kept; words of more are dropped.
_MOST_WORKERS = 4096


class Ear(Protocol):
    """The part of paho's client that hearing needs."""

    on_connect: Any
    on_disconnect: Any
    on_message: Any
    on_subscribe: Any
    on_unsubscribe: Any

    def subscribe(self, topic: Any) -> Any: ...
    def unsubscribe(self, topic: Any) -> Any: ...
    def loop_start(self) -> Any: ...
    def loop_stop(self) -> Any: ...
    def disconnect(self) -> Any: ...


class Heard(NamedTuple):
    """The last that is known of one worker."""

    status: WorkerStatus
    is_gone: bool  #: the broker spoke its will
    since: float  #: `time.monotonic()` of the last live word; that of the first one if none was


class Hearing:
    """A context manager that listens while it is open."""

    def __init__(self, connect: Callable[[], Ear], realm: str) -> None:
        self._client = connect()
        self._realm = realm
        self._statuses: dict[str, tuple[WorkerStatus, float]] = {}
        self._wills: set[str] = set()
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._last = time.monotonic()
        self.is_up = False
        self.dropped = 0

    def __enter__(self) -> Hearing:
        client = self._client
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        # Retained words come behind the answer to a subscription, so that answer says nothing about
        # them. The answer to what is asked next comes behind them.
        client.on_subscribe = lambda *_: client.unsubscribe(_NOTHING)
        client.on_unsubscribe = self._on_answer
        client.on_message = self._on_message
        client.loop_start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def settle(self, patience_sec: float) -> bool:
        """Wait until all retained words are in; False when no broker answered in time."""
        if not self._ready.wait(patience_sec):
            return False
        deadline = time.monotonic() + patience_sec
        while time.monotonic() < min(deadline, self._last + _QUIET_SEC):
            time.sleep(0.02)
        return True

    def workers(self) -> list[Heard]:
        with self._lock:
            return [
                Heard(status, home in self._wills, at)
                for home, (status, at) in sorted(self._statuses.items())
            ]

    def _on_connect(self, client: Any, _data: Any, _flags: Any, code: Any, _more: Any) -> None:
        if code.is_failure:
            return
        self.is_up = True
        with self._lock:  # what went away meanwhile would never be taken back
            self._statuses.clear()
            self._wills.clear()
        client.subscribe((every_worker(self._realm), 1))

    def _on_answer(self, *_: Any) -> None:
        self._last = time.monotonic()  # MQTT promises no order: late words have the pause to come
        self._ready.set()

    def _on_disconnect(self, *_: Any) -> None:
        self.is_up = False

    def _on_message(self, _client: Any, _data: Any, message: Any) -> None:
        home, is_will = home_and_kind(message.topic)
        with self._lock:
            self._last = time.monotonic()
            if is_will and not message.payload:
                self._wills.discard(home)
            elif is_will:
                if len(self._wills) < _MOST_WORKERS:
                    self._wills.add(home)
            elif not message.payload:
                self._statuses.pop(home, None)
            else:
                self._hear(home, message.payload)

    def _hear(self, home: str, payload: bytes) -> None:
        """A broker can be told who may speak where; so nobody speaks for another host."""
        try:
            status = WorkerStatus.parse(payload)
        except BadStatusWord:
            self.dropped += 1
            return
        ours = topics_in(home) == Topics.of(self._realm, status.node, status.worker)
        if not ours or (home not in self._statuses and len(self._statuses) >= _MOST_WORKERS):
            self.dropped += 1
            return
        self._statuses[home] = status, self._last
