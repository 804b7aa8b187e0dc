"""Questions on threads: one at a time is waited for, and one that is given up never answers.

The threads are daemons, so a slow disk or a slow git never keeps the console from being
left; and few, so that many jobs in a row with a slow answer each do not pile up. A thread that
has answered stays for a while: whoever starts one waits for it to run, and a key with it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from mam_core.errors import JobNotFound, MamError
from mam_tui.desk import Desk
from mam_tui.threads import started
from mam_tui.widgets.detail.tab import Question

_MOST = 4
#: So long a thread waits for another question.
_STAY_SEC = 5.0
_LEFT = "its record is gone, and what is left is in timeline, tail, record and output"


class Answer(NamedTuple):
    """What came of a question; `trouble` says why nothing did."""

    ticket: int
    content: Any
    trouble: str
    took_sec: float


class Asking:
    """`deliver` is called on the asking thread, and must not wait."""

    def __init__(self, desk: Desk, deliver: Callable[[Answer], object]) -> None:
        self._desk = desk
        self._deliver = deliver
        self._ticket = 0
        self._running = 0
        self._free = 0  #: threads that wait for a question
        self._asked: deque[tuple[int, Question]] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self.is_waiting = False  #: an answer is wanted and has not come

    @property
    def is_busy(self) -> bool:
        """Too many that were given up are still at it."""
        return self._running >= _MOST

    def ask(self, question: Question) -> int:
        self._ticket += 1
        self.is_waiting = True
        with self._changed:
            self._running += 1
            self._asked.append((self._ticket, question))
            has_somebody = self._free >= len(self._asked)
            self._changed.notify()
        if not has_somebody:
            started("mam-detail", self._serve)
        return self._ticket

    def give_up(self) -> None:
        self._ticket += 1
        self.is_waiting = False

    def close(self) -> None:
        """Send the threads home that wait for a question; one that is at work goes after it."""
        self.give_up()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def takes(self, ticket: int) -> bool:
        """Whether this is the answer that is waited for; it is waited for no longer."""
        if ticket != self._ticket or not self.is_waiting:
            return False
        self.is_waiting = False
        return True

    def is_wanted(self, ticket: int) -> bool:
        return self.is_waiting and ticket == self._ticket

    def _serve(self) -> None:
        while (asked := self._next()) is not None:
            self._run(*asked)

    def _next(self) -> tuple[int, Question] | None:
        with self._changed:
            self._free += 1
            self._changed.wait_for(lambda: self._asked or self._is_closed, _STAY_SEC)
            self._free -= 1
            return self._asked.popleft() if self._asked else None

    def _run(self, ticket: int, question: Question) -> None:
        began = time.monotonic()
        content, trouble = None, ""
        try:
            with self._desk.open_registry() as registry:
                content = question(registry)
        except JobNotFound as problem:
            trouble = f"{problem.message}: {_LEFT}"
        except MamError as problem:
            trouble = problem.message
        except Exception as problem:  # never silent, and never the end of the console
            trouble = f"this cannot be shown: {str(problem) or type(problem).__name__}"
        finally:
            with self._changed:
                self._running -= 1
        if self.is_wanted(ticket):
            self._deliver(Answer(ticket, content, trouble, time.monotonic() - began))
