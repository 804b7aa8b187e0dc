"""The terminal that the console draws on, which may hang up or stop taking output at any moment.

Textual writes from a thread that ends at the first error, and both drawing and leaving wait
without limit for that thread. So what it writes to never fails and, once the console is being
left, never waits for long.
"""

from __future__ import annotations

import io
import math
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from mam_tui.careful_app import CarefulApp

#: A terminal that takes nothing for so long while the console is being left is given up.
PATIENCE_SEC = 3.0
_LOOK_SEC = 0.2

#: All that ask a program to end. ^C is a key in here; this is a SIGINT that somebody sends.
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class TerminalOutput(io.TextIOBase):
    """What is drawn on; `lost` is called once, on any thread, when that has become impossible."""

    def __init__(self, stream: TextIO, lost: Callable[[], object]) -> None:
        self._number = stream.fileno()
        self._fd = _own_descriptor(self._number)
        self._encoding = stream.encoding
        self._lost = lost
        self._deadline = math.inf
        self.is_lost = False
        self._once = threading.Lock()
        self._poll, self._room = select.poll(), select.poll()
        self._poll.register(self._fd, 0)
        self._room.register(self._fd, select.POLLOUT)

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        left = memoryview(text.encode(self._encoding, "backslashreplace"))
        while left and not self.is_lost:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:
                if time.monotonic() > self._deadline:
                    self._lose()
                self._room.poll(_LOOK_SEC * 1000)
            except OSError:
                self._lose()
        return len(text)

    def look(self) -> None:
        """Whether it has hung up: a console that draws nothing would not notice, and spend all of
        a processor on an input that is always at its end."""
        gone = select.POLLHUP | select.POLLERR
        if not self.is_lost and any(happened & gone for _, happened in self._poll.poll(0)):
            self._lose()

    def leave(self) -> None:
        """The console is being left, and the terminal must not hold that up for long."""
        self._deadline = min(self._deadline, time.monotonic() + PATIENCE_SEC)

    def close(self) -> None:
        if not self.closed:
            super().close()
            os.close(self._fd)

    def _lose(self) -> None:
        """Nothing that comes after the console, up to Python's own end, may wait for it, either."""
        with self._once:
            if self.is_lost:
                return
            self.is_lost = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in (1, 2):
            os.dup2(nowhere, number)
        os.close(nowhere)
        self._lost()


def _own_descriptor(number: int) -> int:
    """One that does not block: switching that on in the given one would do it to the shell, too.

    Where the terminal cannot be opened (it is another user's) the given one has to do, which can
    hold us up while the terminal takes nothing.
    """
    for path in (f"/proc/self/fd/{number}", "/dev/tty"):
        with suppress(OSError):
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    return os.dup(number)


@contextmanager
def drawn_on(app: CarefulApp) -> Iterator[None]:
    """While the block lasts `app` draws on the terminal of this process, and is left when that is
    gone or a signal asks us to end, with the code that a shell would give."""

    def leave(number: int, frame: FrameType | None = None) -> None:
        output.leave()
        app.leave(128 + number)

    stderr = sys.__stderr__
    assert stderr is not None
    output = TerminalOutput(stderr, lambda: leave(signal.SIGHUP))
    app.terminal = output
    before = {number: signal.signal(number, leave) for number in _ENDS}
    sys.__stderr__ = output  # type: ignore[misc, assignment]  # where Textual's driver takes it from
    try:
        yield
    finally:
        sys.__stderr__ = stderr  # type: ignore[misc]
        for number, handler in before.items():
            signal.signal(number, handler)
        output.close()
