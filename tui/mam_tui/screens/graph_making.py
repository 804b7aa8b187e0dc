"""How the picture of dependencies comes about: made on a thread, at most once a second and only
while it is seen. A job that changes meanwhile is one line that is drawn again."""

from __future__ import annotations

import time
from asyncio import TimerHandle
from contextlib import suppress

from textual import events
from textual.message import Message
from textual.timer import Timer

from mam_tui.desk import Desk
from mam_tui.folding import Folded
from mam_tui.graph.lines import Kind
from mam_tui.graph.reading import Question, Read, read
from mam_tui.graph.state import GraphState
from mam_tui.screens.view import View
from mam_tui.soon import soon
from mam_tui.threads import started
from mam_tui.widgets.graph_table import GraphTable

_PACE_SEC = 1.0
#: Making it may take this part of the time.
_SHARE = 10


class GraphMaking(View):
    """A view with a `GraphTable`."""

    class Made(Message):
        """From the thread."""

        def __init__(self, made: Read) -> None:
            super().__init__()
            self.made = made

    def __init__(self, desk: Desk, *, ascii_only: bool = False) -> None:
        super().__init__(desk, ascii_only=ascii_only)
        self.state = GraphState(desk)
        self.times_made = 0
        self._is_due = False
        self._next_at = 0.0
        self._asked: TimerHandle | None = None
        self._timer: Timer | None = None
        self._left_with: str | None = None
        self._wanted: str | None = None  #: the board's job, to be gone to when it is there

    @property
    def table(self) -> GraphTable:
        return self.query_one(GraphTable)

    # -- while it is seen ----------------------------------------------------------------------

    def on_mount(self) -> None:
        self._timer = self.set_interval(_PACE_SEC, self._tick, pause=True)
        # Another program may have the terminal for hours.
        self.app.app_suspend_signal.subscribe(self, lambda _: self._rest(), immediate=True)
        self.app.app_resume_signal.subscribe(self, lambda _: self._return())
        self.table.focus()
        self.settle()

    def on_screen_resume(self) -> None:
        cursor = self.desk.board.cursor
        self._wanted = cursor if cursor != self._left_with else None
        self._watch()

    def on_screen_suspend(self) -> None:
        self._rest()
        self._left_with = self.desk.board.cursor
        board = self.console.board
        if board.is_mounted and self.app.is_running:
            board.table.moved()
            board.settle()

    def on_unmount(self) -> None:
        self._rest()

    def on_resize(self, event: events.Resize) -> None:
        self.settle()

    def _watch(self) -> None:
        if self._timer is not None:
            self._timer.resume()
        self.make()

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.pause()
        if self._asked is not None:
            self._asked.cancel()
            self._asked = None

    def _return(self) -> None:
        if self.is_seen:
            self._watch()

    def _tick(self) -> None:
        """Time has passed: it may have been all that a job was held back by."""
        if self.is_seen and self.console.standing().paused is None and self.table.freshen():
            self._ask()

    # -- making it -----------------------------------------------------------------------------

    def _ask(self) -> None:
        """Not at once: many changes are one drawing."""
        self._is_due = True
        if self._asked is None and not self.state.is_being_made:
            pause = max(0.0, self._next_at - time.monotonic())
            self._asked = soon(self, pause, self.make)

    def make(self) -> None:
        """At once, unless it is being made already."""
        self._asked, self._is_due = None, True
        if self.is_seen and not self.state.is_being_made:
            self._is_due = False
            started("mam-graph", self._work, self.state.question())

    def _work(self, asked: Question) -> None:
        """On a thread."""
        made = read(asked)
        with suppress(RuntimeError):  # the console has just been left
            self.post_message(self.Made(made))

    def on_graph_making_made(self, event: Made) -> None:
        event.stop()
        is_old = self.state.take(event.made)
        self.times_made += 1
        self._next_at = time.monotonic() + max(_PACE_SEC, _SHARE * event.made.took_sec)
        if self.is_seen:
            self.show()
            if self._is_due or is_old:
                self._ask()

    def show(self) -> None:
        """What is folded or filtered is another, or all of it."""
        state, table = self.state, self.table
        table.fitting = fitting = state.fitting()
        table.has_groups = bool(state.drawing.groups)
        table.put(state.lines(fitting), state.near)
        if self._wanted is not None:
            table.go_to(f"{Kind.NODE} {self._wanted}")
            self._wanted = None
        self.settle()

    # -- what arrives --------------------------------------------------------------------------

    def take(self, folded: Folded) -> None:
        matters = [self.state.tell(job_id) for job_id in folded.records]
        if any(matters) or folded.loaded is not None or folded.evidence is not None:
            self._ask()
        self.table.freshen()
        self.settle()
