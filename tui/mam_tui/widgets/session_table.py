"""The table of sessions: few lines, each of which may change once a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping

from textual.message import Message

from mam_core.safe_text import cell_width, one_line
from mam_tui.laying import Look, cell
from mam_tui.model import Order
from mam_tui.sessions.columns import COLUMNS, SESSION_COLUMNS
from mam_tui.sessions.rows import SessionList, SessionRow
from mam_tui.widgets.line_table import LineTable

#: Names and jobs get so much room at most, where they need it.
_MOST = {"name": 24, "job": 26}


class SessionTable(LineTable[SessionRow]):
    """Shows a list of sessions."""

    class Moved(Message):
        """Another session is under the cursor."""

    class Opened(Message):
        """The operator wants to see what is done in it."""

    def __init__(
        self,
        sessions: SessionList,
        *,
        ascii_only: bool = False,
        clock: Callable[[], float] = time.time,
        id: str | None = None,
    ) -> None:
        super().__init__(SESSION_COLUMNS, ascii_only=ascii_only, clock=clock, id=id)
        self.sessions = sessions
        self._drawn: list[list[str]] = []

    def put(self, rows: Iterable[SessionRow]) -> None:
        """As they are now; only what looks different is drawn."""
        before = self.wide()
        has_moved = self.sessions.put(rows)
        if before != self.wide() or self._used != self.used:
            self.lay_out()
            has_moved = True
        if has_moved:
            self.moved()
        self.tick()

    def tick(self) -> None:
        """Time has passed: an age may look different, or a figure that changes all the time."""
        drawn, self._drawn = self._drawn, [self._texts(line) for line in range(self.rows)]
        for line, texts in enumerate(self._drawn):
            if line >= len(drawn) or drawn[line] != texts:
                self.redraw_line(line)

    def _texts(self, line: int) -> list[str]:
        row, look = self.row_at(line), Look(self._clock(), self.ascii_only)
        return [cell(laid, row, look) for laid in self._laid]

    def sort(self, order: Order) -> None:
        if order.name in COLUMNS:
            self.sessions.sort(order)
            self.moved()

    # -- what the list knows -------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return len(self.sessions.rows)

    def row_at(self, line: int) -> SessionRow:
        return self.sessions.rows[line]

    def name_of(self, row: SessionRow) -> str:
        return row.name

    def line_of(self, name: str) -> int | None:
        names = (row.name for row in self.sessions.rows)
        return next((line for line, known in enumerate(names) if known == name), None)

    @property
    def cursor_line(self) -> int | None:
        return self.sessions.line

    def put_cursor(self, line: int) -> None:
        self.sessions.move_to(line)

    @property
    def sorted_by(self) -> tuple[str, bool]:
        return self.sessions.order.name, self.sessions.order.reverse

    @property
    def used(self) -> Collection[str]:
        return self.sessions.used

    def wide(self) -> Mapping[str, int]:
        texts = {
            "name": [row.name for row in self.sessions.rows],
            "job": [row.job_id for row in self.sessions.rows],
        }
        return {
            name: max(
                COLUMNS[name].width,
                min(_MOST[name], max((cell_width(one_line(text)) for text in held), default=0)),
            )
            for name, held in texts.items()
        }

    def style_of(self, row: SessionRow) -> str:
        return row.face.style

    # -- what is asked -------------------------------------------------------------------------

    def cursor_moved(self) -> None:
        self.post_message(self.Moved())

    def opened(self) -> None:
        self.post_message(self.Opened())

    def sort_asked(self, column: str) -> None:
        order = self.sessions.order
        self.sort(Order(column, not order.reverse if order.name == column else False))
