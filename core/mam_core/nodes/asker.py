"""Ask another host about a job, and wait for its answer for a bounded time."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from mam_core.errors import MamError
from mam_core.nodes.asking import (
    Answer,
    BadQuestion,
    Kind,
    NoAnswer,
    Question,
    asks_of,
    replies_to,
)


class Line(Protocol):
    """The part of paho's client that asking needs."""

    on_connect: Any
    on_message: Any
    on_subscribe: Any

    def subscribe(self, topic: Any) -> Any: ...
    def publish(self, topic: str, payload: bytes, qos: int, retain: bool) -> Any: ...
    def loop_start(self) -> Any: ...
    def loop_stop(self) -> Any: ...
    def disconnect(self) -> Any: ...


class _Awaited(NamedTuple):
    """A question that waits: only the first answer about its own job is taken."""

    job_id: str
    answer: Answer | None = None


class Asker:
    """For any number of threads; the line is opened by the first question."""

    def __init__(self, connect: Callable[[], Line], realm: str, key: str) -> None:
        self._connect = connect
        self._realm = realm
        self._key = key
        self._mailbox = replies_to(realm, secrets.token_hex(8))
        self._lock = threading.Lock()
        self._line: Line | None = None
        self._listens = threading.Event()
        self._came = threading.Condition()
        self._awaited: dict[str, _Awaited] = {}
        self.dropped = 0  #: answers that nobody waits for, or that cannot be believed

    def ask(
        self, node: str, kind: Kind, job_id: str, patience_sec: float, **given: int
    ) -> Mapping[str, Any]:
        """Raises `NoAnswer`, or `MamError` with the other host's own sentence."""
        deadline = time.monotonic() + patience_sec
        line = self._opened()
        if not self._listens.wait(patience_sec):
            raise NoAnswer(f"{node} cannot be asked: the broker does not answer")
        question = Question(secrets.token_hex(8), kind, job_id, given, self._mailbox, time.time())
        with self._came:
            self._awaited[question.id] = _Awaited(job_id)
        try:
            line.publish(asks_of(self._realm, node), question.encode(self._key), 1, False)
            answer = self._waited_for(question.id, deadline)
        finally:
            with self._came:
                self._awaited.pop(question.id, None)
        if answer is None:
            raise NoAnswer(f"{node} does not answer within {patience_sec:g} s")
        if answer.found is None:
            raise MamError(f"{node} says: {answer.trouble}")
        return answer.found

    def close(self) -> None:
        with self._lock:
            line, self._line = self._line, None
        if line is not None:
            line.disconnect()
            line.loop_stop()

    def _opened(self) -> Line:
        with self._lock:
            if self._line is None:
                line = self._connect()
                line.on_connect = lambda *_: line.subscribe((self._mailbox, 1))
                line.on_subscribe = lambda *_: self._listens.set()
                line.on_message = lambda _client, _data, message: self._hear(message.payload)
                line.loop_start()
                self._line = line
            return self._line

    def _waited_for(self, question_id: str, deadline: float) -> Answer | None:
        with self._came:
            while (answer := self._awaited[question_id].answer) is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                self._came.wait(left)
            return answer

    def _hear(self, payload: bytes) -> None:
        try:
            answer = Answer.parse(payload, self._key)
        except BadQuestion:
            self.dropped += 1
            return
        with self._came:
            awaited = self._awaited.get(answer.id)
            if awaited is None or awaited.answer is not None or awaited.job_id != answer.job_id:
                self.dropped += 1
                return
            self._awaited[answer.id] = awaited._replace(answer=answer)
            self._came.notify_all()
