"""The terminal that a person looks at, while an agent has it: raw bytes both ways.

A pane that is not read (its tmux is stopped) must not hold up the loop that renews
the lease, so what is shown is queued; whoever sees that the queue is full reads
no more from the agent, which then waits as in front of any slow terminal. The
file is opened anew, since to make the one that we were given non-blocking would
make it so for everybody who shares it.
"""

from __future__ import annotations

import os
import signal
import termios
import tty
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mam_core.errors import MamError

#: So much may wait to be shown before the agent has to.
_FULL_BYTES = 1024 * 1024
_CHUNK = 65536
#: What an agent may have switched on and, when it is killed, leaves on: alternate screen, mouse,
#: bracketed paste, focus reports, key modes, hidden cursor, colours, margins, title.
_AFTER_AN_AGENT = (
    b"\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?2026l"
    b"\x1b[?1l\x1b>\x1b[>4;0m\x1b[<u\x1b[r\x1b[?7h\x1b[?25h\x1b[0m\x1b]0;\x1b\\\r\n"
)


class NoPane(MamError):
    """There is no terminal that an interactive agent could have."""

    title = "No pane"


class Pane:
    """Ours, from `take` to `give_back`, again and again; `close` at the end."""

    def __init__(self, fd: int = 0) -> None:
        try:
            self._fd = os.open(os.ttyname(fd), os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as problem:
            raise NoPane("an interactive agent needs a terminal, and this is none") from problem
        self._before: list[Any] | None = None
        self._unshown = bytearray()
        self._resized = True
        self._wake, self._alarm = os.pipe()
        for end in (self._wake, self._alarm):
            os.set_blocking(end, False)
        self._restore = self._hear_sizes()

    # -- whose it is -----------------------------------------------------------------------

    @property
    def is_taken(self) -> bool:
        """An agent has it: nothing of ours may be printed."""
        return self._before is not None

    def take(self) -> None:
        """Raw and empty: the input box of an agent that is gone must not be taken for its own.
        What was typed before is nobody's."""
        if self._before is None:
            self._before = termios.tcgetattr(self._fd)
            tty.setraw(self._fd, termios.TCSAFLUSH)
            self._resized = True
            self.show(b"\x1b[H\x1b[2J")

    def give_back(self) -> None:
        """As it was, whatever the agent did to it."""
        if self._before is None:
            return
        self.show(_AFTER_AN_AGENT)
        self._unshown.clear()
        with suppress(termios.error, OSError):  # the pane is gone
            termios.tcsetattr(self._fd, termios.TCSANOW, self._before)
        self._before = None

    def close(self) -> None:
        self.give_back()
        self._restore()
        for fd in (self._fd, self._wake, self._alarm):
            os.close(fd)

    # -- both ways -------------------------------------------------------------------------

    @property
    def files(self) -> tuple[int, int]:
        """To wait on: keys, and changes of size."""
        return self._fd, self._wake

    @property
    def is_full(self) -> bool:
        return len(self._unshown) >= _FULL_BYTES

    @property
    def has_unshown(self) -> bool:
        return bool(self._unshown)

    def show(self, data: bytes = b"") -> None:
        """As much as goes without waiting, the rest with the next call."""
        self._unshown += data
        try:
            while self._unshown:
                del self._unshown[: os.write(self._fd, self._unshown[:_CHUNK])]
        except BlockingIOError:
            return
        except OSError:  # the pane is gone: the agent works on, nobody looks
            self._unshown.clear()

    def keys(self) -> bytes:
        """What was typed or pasted since; empty when nothing was."""
        try:
            return os.read(self._fd, _CHUNK)
        except OSError:
            return b""

    def new_size(self) -> tuple[int, int] | None:
        """Rows and columns, if they have changed since the last call."""
        with suppress(BlockingIOError):
            os.read(self._wake, 512)
        if not self._resized:
            return None
        self._resized = False
        return self.size()

    def size(self) -> tuple[int, int]:
        try:
            rows, cols = termios.tcgetwinsize(self._fd)
        except (termios.error, OSError):
            return 24, 80
        return rows or 24, cols or 80

    def _hear_sizes(self) -> Callable[[], object]:
        """SIGWINCH wakes whoever waits on `files`; how to undo that."""

        def resized(*_: object) -> None:
            self._resized = True
            with suppress(BlockingIOError):
                os.write(self._alarm, b"w")

        before = signal.signal(signal.SIGWINCH, resized)
        return lambda: signal.signal(signal.SIGWINCH, before)
