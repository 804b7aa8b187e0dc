"""Reads an agent's outputs in a thread of their own: into the log, and into a buffer.

A worker that waits for its registry must not hold its agent up: a pipe is full after
64 KiB, and then the agent's next line waits until somebody reads. So this thread does
nothing but read, write the log and hand over. What the worker has not taken is bounded.
Of a text for people the oldest is dropped (the log has it); of a stream every line counts,
so its agent waits then, as it would before a slow terminal.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from mam_core.clock import Clock
from mam_core.work.output import OutputLog

#: What the worker has not taken yet, at most: of a stream, and of text.
_STREAM_BYTES = 8 * 1024 * 1024
_TEXT_BYTES = 1024 * 1024
_CHUNK = 256 * 1024
#: For the write to the log that is under way when reading is to end.
_END_SEC = 5.0


class Printed(NamedTuple):
    """What came from one output, up to `at` on the clock since boot."""

    data: bytes
    aside: bool  #: from standard error
    at: float


class OutputReader:
    """Of one command; the outputs belong to it from now on."""

    def __init__(
        self,
        outputs: Mapping[int, bool],
        log: OutputLog,
        clock: Clock,
        *,
        newest_only: bool = False,
        held_bytes: int | None = None,
    ) -> None:
        self.dropped_bytes = 0  #: never handed over; the log has them
        self._outputs = dict(outputs)
        self._log = log
        self._clock = clock
        self._newest_only = newest_only
        self._held_bytes = held_bytes or (_TEXT_BYTES if newest_only else _STREAM_BYTES)
        self._held: deque[Printed] = deque()
        self._size = 0
        self._room = threading.Condition()
        self._is_closing = False
        self._news, self._tell = os.pipe()
        self._stopped, self._stop = os.pipe()
        os.set_blocking(self._news, False)
        os.set_blocking(self._tell, False)
        self._thread = threading.Thread(target=self._run, name="mam-output", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Readable when there is something to take, or an output has ended."""
        return self._news

    @property
    def is_over(self) -> bool:
        """All outputs have ended and all was taken."""
        with self._room:
            return not self._outputs and not self._held

    @property
    def has_news(self) -> bool:
        with self._room:
            return bool(self._held)

    def take(self) -> list[Printed]:
        """What was read since the last call; neighbours of one output are one piece."""
        with suppress(BlockingIOError):
            os.read(self._news, 4096)
        with self._room:
            held, self._held, self._size = self._held, deque(), 0
            self._room.notify()
        found: list[Printed] = []
        pieces: list[bytes] = []
        for number, (data, aside, at) in enumerate(held, 1):
            pieces.append(data)
            if number == len(held) or held[number].aside is not aside:
                found.append(Printed(b"".join(pieces), aside, at))
                pieces = []
        return found

    def close(self) -> None:
        """Stop reading, and let go of the outputs."""
        with self._room:
            self._is_closing = True
            self._room.notify()
        os.write(self._stop, b".")
        self._thread.join(_END_SEC)
        if not self._thread.is_alive():  # else its files are left to it: a disk that hangs
            for fd in (*self._outputs, self._news, self._tell, self._stopped, self._stop):
                os.close(fd)

    # -- in the thread ---------------------------------------------------------------------

    def _run(self) -> None:
        poll = select.poll()
        for fd in (self._stopped, *self._outputs):
            poll.register(fd, select.POLLIN)
        while self._outputs and not self._is_closing:
            for fd, _ in poll.poll():
                if fd in self._outputs and not self._read(fd):
                    poll.unregister(fd)
                    os.close(fd)
                    with self._room:
                        del self._outputs[fd]
                    self._wake()

    def _read(self, fd: int) -> bool:
        data = os.read(fd, _CHUNK)
        if data:
            self._log.write(data)
            self._hand_over(Printed(data, self._outputs[fd], self._clock.since_boot()))
        return bool(data)

    def _hand_over(self, piece: Printed) -> None:
        with self._room:
            while self._size > self._held_bytes and not self._is_closing:
                if self._newest_only:
                    oldest = self._held.popleft()
                    self._size -= len(oldest.data)
                    self.dropped_bytes += len(oldest.data)
                else:
                    self._room.wait()
            was_empty = not self._held
            self._held.append(piece)
            self._size += len(piece.data)
        if was_empty:
            self._wake()

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._tell, b".")
