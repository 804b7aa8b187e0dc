"""Something that is looked at again and again, on a thread of its own, while somebody watches.

Nobody watches: the thread sleeps, and nothing is asked. A look that is slow is taken less
often, so that it never has more than its share of the machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mam_core.pace import paced
from mam_tui.threads import started

#: A look may take this part of the time.
_SHARE = 10


class Rounds:
    """`look` runs on the thread and hands on by itself what it found; it never raises.

    `end` runs there after the last look, and closes what the looks have opened.
    """

    def __init__(
        self,
        name: str,
        look: Callable[[], None],
        pace_sec: float,
        end: Callable[[], object] = lambda: None,
    ) -> None:
        self._name = name
        self._look = look
        self._end = end
        self._pace_sec = pace_sec
        self._changed = threading.Condition()
        self._is_watched = False
        self._is_due = False
        self._is_over = False
        self._thread: threading.Thread | None = None
        self.looks = 0  #: for whoever measures

    def watch(self) -> None:
        """From now on, and at once."""
        with self._changed:
            self._is_watched = self._is_due = True
            if self._thread is None and not self._is_over:
                self._thread = started(self._name, self._go_round)
            self._changed.notify()

    def soon(self) -> None:
        """Do not wait for the next turn, if anybody watches at all."""
        with self._changed:
            self._is_due = True
            self._changed.notify()

    def rest(self) -> None:
        with self._changed:
            self._is_watched = False

    def close(self) -> None:
        """A look that is under way is not waited for."""
        with self._changed:
            self._is_over = True
            self._changed.notify()

    def _go_round(self) -> None:
        pause_sec = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_over or self._is_due, pause_sec)
                self._changed.wait_for(lambda: self._is_over or self._is_watched)
                if self._is_over:
                    break
                self._is_due = False
            began = time.monotonic()
            self._look()
            self.looks += 1
            pause_sec = max(paced(self._pace_sec), _SHARE * (time.monotonic() - began))
        self._end()
