"""How commands that run for long are asked to end: ^C, SIGTERM, or the terminal that closes.

Asked once they end in order. What they wait for may never come (a terminal that takes nothing, a
database that hangs): asked for the third time they end at once.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mam_core.pace import paced

#: A sleep goes on after a signal, so this is how late we hear it.
_LOOK_SEC = 0.1

#: A second ^C in a hurry still means an orderly end.
_AT_ONCE = 3

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Wish:
    """Somebody's wish that we end: which signal said so, if any did."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def is_set(self) -> bool:
        return self.signal is not None

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is there. Not a `threading.Event`: one that is set by a signal in the middle of
        a wait for it would wait for itself."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.is_set() and (deadline is None or time.monotonic() < deadline):
            time.sleep(paced(_LOOK_SEC))
        return self.is_set()

    def is_keyboard(self) -> bool:
        return self.signal == signal.SIGINT

    def exit_code(self) -> int:
        """As shells count it."""
        return 0 if self.signal is None else 128 + self.signal


@contextmanager
def until_interrupted() -> Iterator[Wish]:
    """Signals are noted and not raised, so that whatever we are in the middle of ends whole."""
    wish, asked = Wish(), 0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        wish.signal = wish.signal or number
        if asked >= _AT_ONCE:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    before = {number: signal.signal(number, note) for number in _STOPS}
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
