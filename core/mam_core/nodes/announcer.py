"""A worker shows itself: a retained status every few seconds, and a will in case it cannot.

It has a connection of its own, because a will belongs to one, and asks nothing of
anybody: without a broker the worker works on, and nobody sees it from afar.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from mam_core.audit import warn
from mam_core.nodes.status import (
    BadStatusWord,
    Topics,
    WorkerStatus,
    every_worker,
    home_and_kind,
    topics_in,
)

#: Whoever works for a moment only is not worth a word, nor the loading of an MQTT client.
SETTLE_SEC = 1.0
#: How long a goodbye may take; a broker that does not answer speaks the will instead.
_GOODBYE_SEC = 2.0

#: What a will says: that it was spoken is all there is to know.
_GONE = b"gone"


class Voice(Protocol):
    """The part of paho's client that announcing needs."""

    on_connect: Any
    on_message: Any

    def will_set(self, topic: str, payload: bytes, qos: int, retain: bool) -> Any: ...
    def is_connected(self) -> bool: ...
    def subscribe(self, topic: Any) -> Any: ...
    def unsubscribe(self, topic: Any) -> Any: ...
    def publish(self, topic: str, payload: bytes, qos: int, retain: bool) -> Any: ...
    def loop_start(self) -> Any: ...
    def loop_stop(self) -> Any: ...
    def disconnect(self) -> Any: ...


class Announcer:
    """A context manager. `look` is asked for the status to be told, on a thread of our own."""

    def __init__(
        self,
        connect: Callable[[], Voice],
        realm: Callable[[], str],
        look: Callable[[], WorkerStatus],
        is_dead: Callable[[WorkerStatus], bool],
        every_sec: float,
    ) -> None:
        """`realm` may fail while the store cannot be reached: it is asked again.

        `is_dead` tells of a worker of this host whether its process is gone for sure.
        """
        self._connect = connect
        self._realm = realm
        self._look = look
        self._is_dead = is_dead
        self._every_sec = every_sec
        self._stop = threading.Event()
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mam-announcer", daemon=True)

    def __enter__(self) -> Announcer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._due.set()
        # A broker that takes the connection and says nothing must not hold up a worker's end.
        self._thread.join(2 * _GOODBYE_SEC)

    def _run(self) -> None:
        said = ""
        self._stop.wait(SETTLE_SEC)
        while not self._stop.is_set():
            try:
                self._announce()
            except Exception as problem:  # a thread has nobody else to tell
                if str(problem) != said:
                    said = str(problem)
                    warn(f"this host is not announced: {problem}")
                self._stop.wait(self._every_sec)

    def _announce(self) -> None:
        """Until it is not wanted any more."""
        first = self._look()
        realm = self._realm()
        topics = Topics.of(realm, first.node, first.worker)
        siblings = every_worker(realm, first.node)
        client = self._connect()
        client.will_set(topics.will, _GONE, 1, True)
        client.on_connect = lambda *_: self._welcome(client, siblings)
        client.on_message = lambda _client, _data, message: self._tidy(client, topics, message)
        client.loop_start()
        try:
            while not self._stop.is_set():
                if client.is_connected():
                    client.publish(topics.will, b"", 1, True)
                    client.publish(topics.status, self._look().encode(), 1, True)
                self._due.wait(self._every_sec)
                self._due.clear()
        finally:
            self._say_goodbye(client, topics)

    def _welcome(self, client: Voice, siblings: str) -> None:
        """Connected, perhaps anew: the broker may have spoken our will meanwhile."""
        client.subscribe((siblings, 1))
        self._due.set()

    def _tidy(self, client: Voice, ours: Topics, message: Any) -> None:
        """Words that a dead worker of this host left behind are taken back: nobody else can."""
        if not message.retain or not message.payload or message.topic in ours:
            return
        home, is_will = home_and_kind(message.topic)
        if is_will:
            return
        try:
            status = WorkerStatus.parse(message.payload)
        except BadStatusWord:
            return
        if self._is_dead(status):
            for topic in topics_in(home):
                client.publish(topic, b"", 1, True)

    def _say_goodbye(self, client: Voice, topics: Topics) -> None:
        """Who leaves of its own accord is not missed: nothing of it is kept."""
        try:
            if client.is_connected():
                last = [client.publish(topic, b"", 1, True) for topic in topics]
                for told in last:
                    told.wait_for_publish(_GOODBYE_SEC)
        except RuntimeError:
            pass  # the connection was lost this moment: the broker speaks the will
        finally:
            client.disconnect()
            client.loop_stop()
