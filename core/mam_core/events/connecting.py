"""Connecting to a broker for sending, in a thread: names, routes and handshakes take their time."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from mam_core.errors import MamError
from mam_core.record_parts import Broker

_CONNACK_SEC = 5.0


class Sender(Protocol):
    """The part of paho's client that sending needs."""

    on_connect: Any
    on_publish: Any

    def reconnect(self) -> Any: ...
    def disconnect(self) -> Any: ...
    def socket(self) -> Any: ...
    def want_write(self) -> bool: ...
    def loop_read(self) -> Any: ...
    def loop_write(self) -> Any: ...
    def loop_misc(self) -> Any: ...
    def publish(self, topic: str, payload: bytes, qos: int) -> Any: ...


Dial = Callable[[Broker], Sender]


class Lost(Exception):
    """The connection is gone, or never came about."""


class Connecting:
    """One try to connect. Its end is rung, and its result asked for by the ringed."""

    def __init__(self, broker: Broker, dial: Dial, ring: Callable[[], object]) -> None:
        self._broker = broker
        self._dial = dial
        self._ring = ring
        self._lock = threading.Lock()
        self._is_wanted = True
        self._result: Sender | str | None = None
        self._thread = threading.Thread(target=self._run, name="mam-lane", daemon=True)
        self._thread.start()

    def result(self) -> Sender | str | None:
        """A client whose broker said welcome, or why there is none; None: not yet known."""
        with self._lock:
            result, self._result = self._result, None
        if result is not None:
            self._thread.join()  # it has said its last word
        return result

    def abandon(self) -> None:
        """Nobody wants it any more. The thread ends when it can."""
        with self._lock:
            self._is_wanted = False
            result, self._result = self._result, None
        if result is not None and not isinstance(result, str):
            hang_up(result)

    def _run(self) -> None:
        result: Sender | str
        try:
            result = self._connected()
        except Exception as problem:  # whatever it is, the next try may go better
            result = words(problem)
        with self._lock:
            is_wanted = self._is_wanted
            self._result = result if is_wanted else None
        if not is_wanted and not isinstance(result, str):
            hang_up(result)
        with suppress(OSError, MamError):
            self._ring()

    def _connected(self) -> Sender:
        client = self._dial(self._broker)
        answers: list[Any] = []
        client.on_connect = lambda c, u, flags, code, properties: answers.append(code)
        client.reconnect()
        try:
            deadline = time.monotonic() + _CONNACK_SEC
            while not answers:
                if time.monotonic() > deadline:
                    raise Lost("it does not answer")
                wait_for(client, 0.5)
                if (client.loop_read() or client.loop_write()) and not answers:
                    raise Lost("the connection was lost")
            if answers[0].is_failure:
                raise Lost(f"it answers: {str(answers[0]).lower()}")
        except BaseException:
            hang_up(client)
            raise
        return client


def wait_for(client: Sender, timeout: float) -> None:
    """Until something happens on its connection."""
    sock = client.socket()
    if sock is None:
        raise Lost("the connection was lost")
    poll = select.poll()
    poll.register(sock, interest(client))
    poll.poll(timeout * 1000)


def interest(client: Sender) -> int:
    return select.POLLIN | (select.POLLOUT if client.want_write() else 0)


def hang_up(client: Sender) -> None:
    with suppress(OSError, ValueError):
        client.disconnect()


def words(problem: Exception) -> str:
    said = problem.strerror if isinstance(problem, OSError) else None
    return (said or str(problem) or type(problem).__name__).lower()
