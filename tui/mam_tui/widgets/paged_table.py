"""A table of which only a part is in memory: the rows around what is seen.

How many there are is known, so one can go anywhere at once; a row that has not come yet
is drawn as one that is being read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, TypeVar

from textual.message import Message

from mam_core.operations.history import Act, Historic
from mam_core.safe_text import cell_width, one_line
from mam_tui.history.columns import (
    ACT_COLUMNS,
    ActRow,
    JobRow,
    face_of_job,
    is_pending,
    job_columns,
    used_by,
)
from mam_tui.history.reading import WINDOW
from mam_tui.laying import Columns
from mam_tui.widgets.line_table import LineTable

P = TypeVar("P", bound=Historic | Act)

#: So many lines before the end of what was read, more is asked for.
_MARGIN = 150
#: The room for ids.
_LEAST_ID, _MOST_ID = 8, 24


class PagedTable(LineTable[P | None], Generic[P]):
    """Told what stands at which lines."""

    class Moved(Message):
        """Another row is under the cursor."""

    class Opened(Message):
        """The operator wants to see all of the job under the cursor."""

    class Scrolled(Message):
        """Other lines are seen."""

    def __init__(
        self,
        columns: Columns[P | None],
        sorted_by: str,
        went: Callable[[], object],
        *,
        ascii_only: bool = False,
        clock: Callable[[], float] = time.time,
        id: str | None = None,
    ) -> None:
        """`went` is called as soon as the cursor moves: the key that comes next may leave the
        view, and a message would be read after that."""
        super().__init__(columns, ascii_only=ascii_only, clock=clock, id=id)
        self._went = went
        self._count = 0
        self._first = 0
        self._known: Sequence[P] = ()
        self._cursor: int | None = None
        self._sorted_by = sorted_by
        # Both only grow: columns that come and go with every page would be no columns.
        self._needs: frozenset[str] = frozenset()
        self._id_width = _LEAST_ID

    # -- what is told --------------------------------------------------------------------------

    def put(self, count: int, first: int, rows: Sequence[P], line: int | None) -> None:
        """So many there are; these stand from `first` on; the cursor's row stands at `line`."""
        before = (self._count, self._first, self._known, self._cursor)
        self._count, self._first, self._known = count, first, rows
        if line is not None:
            self._cursor = line
        last = count - 1
        self._cursor = None if last < 0 else max(0, min(self._cursor or 0, last))
        self._needs = self._needs.union(*map(self.uses, rows))
        widest = max((cell_width(one_line(self.job_of(row))) for row in rows), default=0)
        if (width := min(_MOST_ID, widest)) > self._id_width:
            self._id_width = width
            self.lay_out()
        if before != (self._count, self._first, self._known, self._cursor):
            self.moved()

    def begin_anew(self) -> None:
        """Other rows will come: from their beginning."""
        self._cursor = 0 if self._count else None
        self._held = None
        self._scroll(0)

    def uses(self, row: P) -> Collection[str]:
        return ()

    def job_of(self, row: P) -> str:
        raise NotImplementedError

    def wide(self) -> Mapping[str, int]:
        return {"id": self._id_width}

    # -- what it knows -------------------------------------------------------------------------

    @property
    def row(self) -> P | None:
        """Under the cursor; None also for one that has not come yet."""
        return self.row_at(self._cursor) if self._cursor is not None else None

    @property
    def follows(self) -> bool:
        """The cursor is where one looks."""
        return self._cursor is not None and self._cursor in self.in_sight()

    def lacking(self) -> int | None:
        """Where to read from, when what is seen or will soon be seen has not come."""
        seen = self.in_sight()
        begin, end = max(0, seen.start - _MARGIN), min(self._count, seen.stop + _MARGIN)
        if self._first <= begin and end <= self._first + len(self._known):
            return None
        return max(0, (seen.start + seen.stop - WINDOW) // 2)

    @property
    def first(self) -> int:
        return self._first

    @property
    def rows(self) -> int:
        return self._count

    def row_at(self, line: int) -> P | None:
        at = line - self._first
        return self._known[at] if 0 <= at < len(self._known) else None

    def line_of(self, name: str) -> int | None:
        found = (at for at, row in enumerate(self._known) if self.name_of(row) == name)
        at = next(found, None) if name else None
        return None if at is None else self._first + at

    @property
    def cursor_line(self) -> int | None:
        return self._cursor

    def put_cursor(self, line: int) -> None:
        self._cursor = max(0, min(line, self._count - 1)) if self._count else None

    @property
    def sorted_by(self) -> tuple[str, bool]:
        return self._sorted_by, True

    @property
    def used(self) -> Collection[str]:
        return self._needs

    # -- what becomes of it --------------------------------------------------------------------

    def cursor_moved(self) -> None:
        self._went()
        self.post_message(self.Moved())

    def opened(self) -> None:
        self.post_message(self.Opened())

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        self.post_message(self.Scrolled())


class JobsTable(PagedTable[Historic]):
    """Every job that ever was."""

    def __init__(
        self, went: Callable[[], object], *, ascii_only: bool, clock: Callable[[], float]
    ) -> None:
        columns = job_columns(lambda: self._blocked)
        super().__init__(columns, "changed", went, ascii_only=ascii_only, clock=clock)
        self._blocked: frozenset[str] = frozenset()
        self.marks: dict[str, Historic] = {}  #: in the order in which they were marked

    def name_of(self, row: JobRow) -> str:
        return row.entry.job_id if row is not None else ""

    def job_of(self, row: Historic) -> str:
        return row.entry.job_id

    def style_of(self, row: JobRow) -> str:
        return face_of_job(row, self._blocked).style

    def is_marked(self, row: JobRow) -> bool:
        return row is not None and row.entry.job_id in self.marks

    def uses(self, row: Historic) -> Collection[str]:
        return used_by(row)

    def block(self, is_blocked: Callable[[str], bool]) -> None:
        """Asked for each pending job that was read."""
        pending = (row.entry.job_id for row in self._known if is_pending(row))
        blocked = frozenset(filter(is_blocked, pending))
        if blocked != self._blocked:
            self._blocked = blocked
            self.refresh()

    def mark(self) -> None:
        """The one under the cursor, or no longer; the cursor goes on."""
        row = self.row
        if row is None:
            return
        if self.marks.pop(row.entry.job_id, None) is None:
            self.marks[row.entry.job_id] = row
        self.redraw_line(self.cursor_line)
        self.action_go(1)

    def clear_marks(self) -> None:
        self.marks.clear()
        self.refresh()


class ActsTable(PagedTable[Act]):
    """What persons did."""

    def __init__(
        self, went: Callable[[], object], *, ascii_only: bool, clock: Callable[[], float]
    ) -> None:
        super().__init__(ACT_COLUMNS, "when", went, ascii_only=ascii_only, clock=clock)

    def name_of(self, row: ActRow) -> str:
        return f"{row.at} {row.job_id} {row.n}" if row is not None else ""

    def job_of(self, row: Act) -> str:
        return row.job_id

    def style_of(self, row: ActRow) -> str:
        return "idle"
