"""A host answers what others ask about its jobs, one question at a time.

Only one process of a host answers for a registry, by a lock; when it ends, another
takes over. What cannot be believed is counted and dropped.
"""

from __future__ import annotations

import fcntl
import os
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from mam_core.audit import warn
from mam_core.disk import Folder
from mam_core.errors import MamError, StoreError
from mam_core.nodes.announcer import SETTLE_SEC
from mam_core.nodes.asking import Answer, BadQuestion, Question, asks_of
from mam_core.pace import paced

LOCK_NAME = ".answerer"

#: Questions that wait; more are dropped, and whoever asked asks again.
_MOST_WAITING = 32
#: So many ids are remembered, so that a question that is sent again is not answered again.
_MOST_KNOWN = 4096
_TRY_LOCK_SEC = 2.0

#: What is known about a job; raises `MamError` where nothing is.
Look = Callable[[Question], Mapping[str, Any]]


class Identity(NamedTuple):
    """What all who work on a registry share."""

    realm: str
    key: str


class Voice(Protocol):
    """The part of paho's client that answering needs."""

    on_connect: Any
    on_subscribe: Any
    on_message: Any

    def subscribe(self, topic: Any) -> Any: ...
    def publish(self, topic: str, payload: bytes, qos: int, retain: bool) -> Any: ...
    def loop_start(self) -> Any: ...
    def loop_stop(self) -> Any: ...
    def disconnect(self) -> Any: ...


class Answerer:
    """A context manager that answers while it is open."""

    def __init__(
        self,
        connect: Callable[[], Voice],
        registry_path: str,
        identity: Callable[[], Identity],
        node: str,
        look: Look,
    ) -> None:
        """`identity` may fail while the store cannot be reached: it is asked again."""
        self._connect = connect
        self._registry_path = registry_path
        self._ask_identity = identity
        self._realm, self._key = Identity("", "")
        self._node = node
        self._look = look
        self._waiting: queue.Queue[bytes] = queue.Queue(_MOST_WAITING)
        self._known: OrderedDict[str, None] = OrderedDict()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mam-answerer", daemon=True)
        self.dropped = 0
        self.listens = threading.Event()  #: questions from now on are answered

    def __enter__(self) -> Answerer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join(2 * _TRY_LOCK_SEC)

    def _run(self) -> None:
        if self._stop.wait(SETTLE_SEC):
            return
        try:
            # A host whose records are in a database may have no folder of its own yet.
            with Folder.open(self._registry_path, create=True) as folder:
                fd = folder.open_in_place(LOCK_NAME, os.O_RDWR)
            try:
                if self._is_chosen(fd) and self._knows_identity():
                    self._serve()
            finally:
                os.close(fd)
        except (OSError, StoreError, MamError) as problem:
            warn(f"other hosts cannot ask about jobs of this one: {problem}")

    def _is_chosen(self, fd: int) -> bool:
        """Waits for its turn, until it is not wanted any more."""
        while not self._stop.is_set():
            with suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            self._stop.wait(paced(_TRY_LOCK_SEC))
        return False

    def _knows_identity(self) -> bool:
        said = ""
        while not self._stop.is_set():
            try:
                self._realm, self._key = self._ask_identity()
                return True
            except (MamError, OSError) as problem:
                if str(problem) != said:
                    said = str(problem)
                    warn(f"other hosts cannot ask about jobs of this one: {problem}")
            self._stop.wait(paced(_TRY_LOCK_SEC))
        return False

    def _serve(self) -> None:
        client = self._connect()
        client.on_connect = lambda *_: client.subscribe((asks_of(self._realm, self._node), 1))
        client.on_subscribe = lambda *_: self.listens.set()
        client.on_message = lambda _client, _data, message: self._take(message.payload)
        client.loop_start()
        try:
            while not self._stop.is_set():
                with suppress(queue.Empty):
                    self._answer(client, self._waiting.get(timeout=0.2))
        finally:
            client.disconnect()
            client.loop_stop()

    def _take(self, payload: bytes) -> None:
        try:
            self._waiting.put_nowait(payload)
        except queue.Full:
            self.dropped += 1

    def _answer(self, client: Voice, payload: bytes) -> None:
        try:
            asked = Question.parse(payload, self._key, self._realm, time.time())
        except BadQuestion:
            self.dropped += 1
            return
        if asked.id in self._known:  # sent again, by a broker or by somebody who listened
            self.dropped += 1
            return
        self._known[asked.id] = None
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        client.publish(asked.reply_to, self._found(asked).encode(self._key), 1, False)

    def _found(self, asked: Question) -> Answer:
        try:
            return Answer(asked.id, asked.job_id, dict(self._look(asked)))
        except MamError as problem:
            trouble = problem.message
        except Exception as problem:  # one odd job must not silence a host
            trouble = f"{type(problem).__name__}: {problem}"
        return Answer(asked.id, asked.job_id, None, trouble)
