"""The table of a short list: few lines, each of which may change once a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import ClassVar, TypeVar

from textual.message import Message

from mam_core.safe_text import cell_width, one_line
from mam_tui.laying import Columns, Look, cell
from mam_tui.model import Order
from mam_tui.short_list import Named, ShortList
from mam_tui.widgets.line_table import LineTable

R = TypeVar("R", bound=Named)


class ShortTable(LineTable[R]):
    """Shows a list that somebody else keeps."""

    class Moved(Message):
        """Another row is under the cursor."""

    class Opened(Message):
        """The operator wants to see more of the one under the cursor."""

    #: Columns that get as much room as they need, up to so much.
    MOST: ClassVar[Mapping[str, int]] = {}

    def __init__(
        self,
        columns: Columns[R],
        listed: ShortList[R],
        *,
        ascii_only: bool = False,
        clock: Callable[[], float] = time.time,
        id: str | None = None,
    ) -> None:
        super().__init__(columns, ascii_only=ascii_only, clock=clock, id=id)
        self.listed = listed
        self._drawn: list[list[str]] = []

    def put(self, rows: Iterable[R]) -> None:
        """As they are now; only what looks different is drawn."""
        before = self.wide()
        has_moved = self.listed.put(rows)
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
        if order.name in self._all.all:
            self.listed.sort(order)
            self.moved()

    # -- what the list knows -------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return len(self.listed.rows)

    def row_at(self, line: int) -> R:
        return self.listed.rows[line]

    def name_of(self, row: R) -> str:
        return row.name

    def line_of(self, name: str) -> int | None:
        return self.listed.line_of(name)

    @property
    def cursor_line(self) -> int | None:
        return self.listed.line

    def put_cursor(self, line: int) -> None:
        self.listed.move_to(line)

    @property
    def sorted_by(self) -> tuple[str, bool]:
        return self.listed.order.name, self.listed.order.reverse

    @property
    def used(self) -> Collection[str]:
        return self.listed.used

    def full_text(self, row: R, name: str) -> str:
        """What would stand in a column of `MOST`, had it all the room that there is."""
        raise NotImplementedError

    def wide(self) -> Mapping[str, int]:
        found = {}
        for name, most in self.MOST.items():
            texts = (one_line(self.full_text(row, name)) for row in self.listed.rows)
            need = max(map(cell_width, texts), default=0)
            found[name] = max(self._all.all[name].width, min(most, need))
        return found

    # -- what is asked -------------------------------------------------------------------------

    def cursor_moved(self) -> None:
        self.post_message(self.Moved())

    def opened(self) -> None:
        self.post_message(self.Opened())

    def sort_asked(self, column: str) -> None:
        order = self.listed.order
        self.sort(Order(column, not order.reverse if order.name == column else False))

    def sort_by_next(self) -> None:
        shown, order = list(self.headings), self.listed.order
        at = shown.index(order.name) if order.name in shown else -1
        self.sort(Order(shown[(at + 1) % len(shown)]))

    def reverse(self) -> None:
        order = self.listed.order
        self.sort(order._replace(reverse=not order.reverse))
