"""How commands that run for long are asked to end: ^C, SIGTERM, or the terminal that closes."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mam_core.pace import paced

#: A sleep goes on after a signal, so this is how late we hear it.
_LOOK_SEC = 0.1

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
    wish = Wish()

    def note(number: int, frame: FrameType | None) -> None:
        wish.signal = wish.signal or number

    before = {number: signal.signal(number, note) for number in _STOPS}
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
