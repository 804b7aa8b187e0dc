"""The job table: lines drawn on demand, one per visible job, however many there are.

A change of one visible job draws one line, a change elsewhere none. The cursor
and the marks belong to the board, which knows jobs by id; here are only lines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from mam_tui.columns import COLUMNS, JOB_COLUMNS
from mam_tui.marking import Range
from mam_tui.model import Board, Effect
from mam_tui.rows import Row
from mam_tui.widgets.line_table import LineTable

_MOST_OF_AN_ID = 26
#: Ages are in minutes, but for running jobs.
_AGE_SEC = 60.0


class JobTable(LineTable[Row]):
    """Shows a board."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+down", "extend(1)", "mark downwards", show=False),
        Binding("shift+up", "extend(-1)", "mark upwards", show=False),
    ]

    class Moved(Message):
        """Another job is under the cursor."""

        def __init__(self, job_id: str | None) -> None:
            super().__init__()
            self.job_id = job_id

    class Opened(Message):
        """The operator wants to see all of a job."""

        def __init__(self, job_id: str) -> None:
            super().__init__()
            self.job_id = job_id

    class SortAsked(Message):
        """A heading was clicked."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    def __init__(
        self,
        board: Board,
        *,
        columns: Sequence[str] = (),
        ascii_only: bool = False,
        clock: Callable[[], float] = time.time,
        id: str | None = None,
    ) -> None:
        super().__init__(JOB_COLUMNS, ascii_only=ascii_only, clock=clock, id=id)
        self.board = board
        self.columns = tuple(columns)
        self._wide: Mapping[str, int] = {}
        self.range: Range | None = None  #: while one is being marked

    def on_mount(self) -> None:
        self.set_interval(_AGE_SEC, self._grow_older)

    def _grow_older(self) -> None:
        """Nothing else draws the lines of jobs that do not run."""
        if self.shows_clock:
            self.refresh()

    # -- what the board tells ------------------------------------------------------------------

    def changed(self, job_id: str, effect: Effect) -> None:
        """After the board took a change; several of `MOVED` are better told once, by `moved`."""
        if effect is Effect.LINE:
            self.redraw(job_id)
        elif effect is Effect.MOVED:
            self.moved()

    def redraw(self, job_id: str) -> None:
        """One line, if it is visible."""
        self.redraw_line(self.board.line_of(job_id))

    def moved(self) -> None:
        if self._wide != self.wide():  # an id has come that is longer than all others
            self.lay_out()
        super().moved()

    def lay_out(self) -> None:
        self._wide = self.wide()
        super().lay_out()

    def tick(self) -> None:
        """A second has passed: lines of running jobs show other times."""
        if self.shows_clock:
            for line in self.in_sight():
                if self.board[line].is_running:
                    self.redraw_line(line)

    @property
    def shows_running(self) -> bool:
        return any(self.board[line].is_running for line in self.in_sight())

    def go_to_job(self, job_id: str) -> bool:
        line = self.board.line_of(job_id)
        if line is None:
            return False
        self.move(line)
        return True

    # -- what the board knows ------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return len(self.board)

    def row_at(self, line: int) -> Row:
        return self.board[line]

    def name_of(self, row: Row) -> str:
        return row.job_id

    def line_of(self, name: str) -> int | None:
        return self.board.line_of(name)

    @property
    def cursor_line(self) -> int | None:
        return self.board.line_of(self.board.cursor)

    def put_cursor(self, line: int) -> None:
        if self.range is None:
            self.board.move_to(line)
            return
        passed = self.range.go(line)
        for one in self.in_sight():
            if one in passed:
                self.redraw_line(one)

    # -- a range of marks ----------------------------------------------------------------------

    def begin_range(self, *, sticky: bool) -> None:
        """From the cursor on."""
        self.range = Range(self.board, sticky=sticky)
        self.redraw_line(self.cursor_line)

    def end_range(self) -> None:
        """What it has marked stays marked."""
        self.range = None

    def drop_range(self) -> None:
        if self.range is not None:
            self.range.drop()
            self.range = None
            self.refresh()

    def move(self, line: int) -> None:
        if self.range is not None and not self.range.sticky:
            self.end_range()
        super().move(line)

    def action_extend(self, lines: int) -> None:
        self.extend_to((self.cursor_line or 0) + lines)

    def extend_to(self, line: int) -> None:
        """The range goes on to this line; one is begun when there is none."""
        if not self.rows:
            return
        if self.range is None:
            self.begin_range(sticky=False)
        super().move(line)
        self.cursor_moved()

    @property
    def sorted_by(self) -> tuple[str, bool]:
        return self.board.order.name, self.board.order.reverse

    @property
    def used(self) -> Collection[str]:
        return self.board.used

    def wide(self) -> Mapping[str, int]:
        ids = [self.board[line].job_id for line in range(min(200, len(self.board)))]
        longest = max(map(len, ids), default=0)
        return {"id": max(COLUMNS["id"].width, min(_MOST_OF_AN_ID, longest))}

    def style_of(self, row: Row) -> str:
        return "idle" if row.is_doubtful(self._clock()) else row.face.style

    def is_marked(self, row: Row) -> bool:
        return row.job_id in self.board.marks

    # -- what is asked -------------------------------------------------------------------------

    def cursor_moved(self) -> None:
        self.post_message(self.Moved(self.board.cursor))

    def opened(self) -> None:
        if self.board.cursor is not None:
            self.post_message(self.Opened(self.board.cursor))

    def sort_asked(self, column: str) -> None:
        self.post_message(self.SortAsked(column))
