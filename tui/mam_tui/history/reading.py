"""The history, read on a thread: what is new in the audit log, and the rows that are looked at.

One thread has the index. It reads on while somebody watches, a little at a time, and
between two steps it answers what the view wants to see: always the newest question, so
that whoever types fast waits for one answer and not for ten.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from enum import StrEnum
from typing import NamedTuple

from mam_core.operations.history import Act, Historic, History, HistoryBusy
from mam_tui.desk import Desk
from mam_tui.threads import started

#: Rows that are held at once, however many there are.
WINDOW = 600
#: Between two looks at the audit log; a look may take a twentieth of the time, but none is waited
#: for longer than this: the first one reads everything, and says nothing about the next.
_PACE_SEC = 3.0
_SHARE = 20
_LONGEST_SEC = 30.0
#: While much is read, what is there already is shown so often.
_SHOW_SEC = 1.0
_BREATH_SEC = 0.001


class Part(StrEnum):
    """What is listed."""

    JOBS = "jobs"
    ACTS = "acts"


class Want(NamedTuple):
    """What the view looks at."""

    part: Part = Part.JOBS
    text: str = ""
    first: int = 0  #: the line that the rows are to begin with
    cursor: Historic | Act | None = None  #: the row under the cursor
    follows: bool = False  #: the rows are to have that one, wherever it stands now


class Sight(NamedTuple):
    """What there is of it."""

    want: Want
    total: int
    fitting: int  #: of all, those that have the words
    first: int
    rows: Sequence[Historic | Act]
    line: int | None  #: where the row under the cursor stands now
    damaged: int = 0  #: lines of the log that could not be read
    is_kept: bool = True


class Progress(NamedTuple):
    """How far the audit log was read; `words` say why it was not."""

    done: int = 0
    total: int = 0
    words: str = ""


class HistoryReader:
    """`deliver` is called on the thread, and must not wait."""

    def __init__(self, desk: Desk, deliver: Callable[[Sight | Progress], object]) -> None:
        self._desk = desk
        self._deliver = deliver
        self._changed = threading.Condition()
        self._want = Want()
        self._is_asked = False
        self._is_watched = False
        self._is_over = False
        self._next_at = 0.0
        self._thread: threading.Thread | None = None
        self._opened = ExitStack()
        self._history: History | None = None
        self._fitting = -1
        self.looks = 0  #: for whoever measures

    @property
    def is_idle(self) -> bool:
        """The log was read, and nothing is asked."""
        return bool(self.looks) and not self._is_asked

    def watch(self) -> None:
        """From now on, and at once."""
        with self._changed:
            self._is_watched = self._is_asked = True
            self._next_at = 0.0
            if self._thread is None and not self._is_over:
                self._thread = started("mam-history", self._go_on)
            self._changed.notify()

    def rest(self) -> None:
        with self._changed:
            self._is_watched = False

    def close(self) -> None:
        """What is under way is not waited for."""
        with self._changed:
            self._is_over = True
            self._changed.notify()

    def soon(self) -> None:
        """Read on without waiting for the next turn."""
        with self._changed:
            self._next_at = 0.0
            self._changed.notify()

    def ask(self, want: Want) -> None:
        """Instead of whatever was asked before."""
        with self._changed:
            self._want = want
            self._is_asked = True
            self._changed.notify()

    def know(self, want: Want) -> None:
        """For when there is something new; nothing of it is missing now."""
        with self._changed:
            self._want = want

    # -- on the thread -----------------------------------------------------------------------

    def _go_on(self) -> None:
        while True:
            with self._changed:
                while not self._is_over and not self._is_due:
                    wait = max(0.0, self._next_at - time.monotonic()) if self._is_watched else None
                    self._changed.wait(wait)
                if self._is_over:
                    break
            try:
                self._turn()
            except Exception as problem:  # never silent, and never the end of looking
                self._let_go()
                self._deliver(Progress(words=str(problem) or type(problem).__name__))
                with self._changed:
                    self._is_asked = False
                    self._next_at = time.monotonic() + _PACE_SEC
        self._let_go()

    @property
    def _is_due(self) -> bool:
        return self._is_asked or (self._is_watched and time.monotonic() >= self._next_at)

    def _turn(self) -> None:
        if self._history is None:
            registry = self._opened.enter_context(self._desk.open_registry())
            self._history = self._opened.enter_context(History(registry))
        if self._is_asked:
            self._answer(self._history)
        else:
            self._read_on(self._history)

    def _let_go(self) -> None:
        self._history = None
        self._opened.close()

    def _read_on(self, history: History) -> None:
        began = shown = time.monotonic()
        is_new = False
        try:
            for done, total in self._steps(history):
                is_new |= total > 0
                if done < total:
                    self._deliver(Progress(done, total))
                if time.monotonic() - shown > _SHOW_SEC or self._is_asked:
                    self._answer(history)
                    shown = time.monotonic()
            words = ""
        except HistoryBusy as problem:
            is_new, words = True, f"{problem.message}: here is what it has"
        if is_new or history.count() != self._fitting:
            self._answer(history)
        self._deliver(Progress(words=words))
        self.looks += 1
        if not history.is_kept and not history.count():
            self._let_go()  # there was no audit log yet: perhaps there will be one on disk
        now = time.monotonic()
        with self._changed:
            self._next_at = now + min(max(_PACE_SEC, _SHARE * (now - began)), _LONGEST_SEC)

    def _steps(self, history: History) -> Iterator[tuple[int, int]]:
        """It may be left half-way: what was read stays read."""
        # Python runs one thread at a time: without a breath every key would wait for this one.
        for step in history.refresh(lambda: time.sleep(_BREATH_SEC)):
            yield step
            if self._is_over or not self._is_watched:
                return

    def _answer(self, history: History) -> None:
        with self._changed:
            want, self._is_asked = self._want, False
        self._deliver(_sight(history, want))
        self._fitting = history.count()


def _sight(history: History, want: Want) -> Sight:
    text, cursor = want.text, want.cursor
    line: int | None = None
    if want.part is Part.JOBS:
        total = fitting = history.count(text)
        total = history.count() if text else total
        if isinstance(cursor, Historic):
            line = history.line_of(cursor.entry.job_id, text=text)
    else:
        total = fitting = history.count_acts(text)
        total = history.count_acts() if text else total
        if isinstance(cursor, Act):
            line = history.count_acts(text, before=cursor)
    first = want.first
    if want.follows and line is not None and not first <= line < first + WINDOW:
        first = line - WINDOW // 2
    first = max(0, min(first, fitting - WINDOW))
    rows: Sequence[Historic | Act]
    if want.part is Part.JOBS:
        rows = history.page(text=text, limit=WINDOW, skip=first)
    else:
        rows = history.acts(text=text, limit=WINDOW, skip=first)
    return Sight(want, total, fitting, first, rows, line, history.damaged, history.is_kept)
