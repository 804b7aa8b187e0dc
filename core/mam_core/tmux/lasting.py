"""One lasting client of a tmux server, made anew when it breaks: looks without a process for each.

Whatever goes wrong is TmuxFailed, that is *unknown*; the next call begins with a new client.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from mam_core.tmux.command import Address, ask, listens
from mam_core.tmux.control_client import Chain, ControlClient
from mam_core.tmux.control_parser import Reply
from mam_core.tmux.facts import NoServer, TmuxFailed
from mam_core.tmux.turnstile import alone

T = TypeVar("T")

#: More than a busy machine needs; a server that is stopped or wedged costs this, once.
LIMIT_SEC = 5.0

#: A server that takes no client is not asked again at once: that were a process for each look.
_FIRST_PAUSE_SEC = 0.25
_LONGEST_PAUSE_SEC = 16.0


class LastingClient:
    """Threads take turns. Nothing is started before the first question."""

    def __init__(
        self, address: Address, limit_sec: float = LIMIT_SEC, beside: str | None = None
    ) -> None:
        """`beside` is a pane: the client goes to its session, else to the one used last."""
        self._address = address
        self._limit_sec = limit_sec
        self._beside = beside
        self._lock = threading.Lock()
        self._client: ControlClient | None = None
        self._refusal = TmuxFailed()
        self._refused_by: tuple[int, int] | None = None
        self._pause_sec = _FIRST_PAUSE_SEC
        self._not_before = 0.0

    @property
    def pid(self) -> int | None:
        """For those who count processes."""
        client = self._client
        return None if client is None else client.pid

    def ask(self, chains: list[Chain], read: Callable[[list[list[Reply]]], T]) -> T:
        """What `read` makes of the replies; if it raises, the client is given up, too."""
        with self._lock:
            had_one = self._client is not None
            try:
                return self._try(chains, read)
            except NoServer:
                # The session that the client was attached to has ended, perhaps alone: ask anew.
                if not had_one:
                    raise
                return self._try(chains, read)

    def close(self) -> None:
        with self._lock:
            if self._client is None:
                return
            with suppress(TmuxFailed), alone(self._address):
                self._drop()
                # Its end is news once the server has seen it, which is after its process has gone.
                ask(self._address, "display-message", "-p", "")
            self._drop()

    def _try(self, chains: list[Chain], read: Callable[[list[list[Reply]]], T]) -> T:
        client = self._client or self._connect()
        try:
            return read(client.ask(chains, self._limit_sec))
        except BaseException:
            # Replies are told apart by their order, which is lost now.
            self._drop()
            raise

    def _connect(self) -> ControlClient:
        if not listens(self._address):
            raise NoServer
        # Each server makes its socket anew: what one refused says nothing about the next.
        listener = _identity(self._address)
        if listener == self._refused_by and time.monotonic() < self._not_before:
            raise type(self._refusal)(self._refusal.message)
        try:
            with alone(self._address):
                self._client = ControlClient(self._address, self._limit_sec, self._beside)
        except TmuxFailed as problem:
            self._refusal, self._refused_by = problem, listener
            self._not_before = time.monotonic() + self._pause_sec
            self._pause_sec = min(2 * self._pause_sec, _LONGEST_PAUSE_SEC)
            raise
        self._pause_sec = _FIRST_PAUSE_SEC
        return self._client

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _identity(address: Address) -> tuple[int, int] | None:
    try:
        state = os.stat(address.path)
    except OSError:
        return None
    return state.st_ino, state.st_ctime_ns
