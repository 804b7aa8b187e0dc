"""The graph as lines with a cursor: only what is seen is put into words, and only what looks
different is drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from mam_core.safe_text import clip
from mam_tui.actions import ACTIONS
from mam_tui.graph.lines import GraphLine, Kind
from mam_tui.graph.text import Cells, Facts, cells_of, step_in, widest
from mam_tui.laying import Column, Columns, Look
from mam_tui.widgets.line_table import LineTable

#: Rails and names have so much of the width at most, and at least so many cells.
_SHARE, _LEAST = 0.4, 12
#: With less width what holds a job back needs it more.
_ROOM_FOR_GROUPS = 90
#: Lines whose last look is remembered; more are seen by nobody at once.
_REMEMBERED = 500


def _state(cells: Cells, look: Look) -> str:
    face = cells.face
    return "" if face is None else f"{face.ascii if look.ascii else face.glyph} {face.word}"


_ALL: tuple[Column[Cells], ...] = (
    Column("state", "STATE", 12, 100, _state, lambda cells: 0),
    Column("tree", "JOB", 20, 95, lambda c, _: c.tree, lambda c: 0),
    Column("agent", "AGENT", 12, 60, lambda cells, _: cells.agent, lambda cells: 0),
    Column("group", "GROUP", 10, 40, lambda cells, _: cells.group, lambda cells: 0),
    Column("words", "HELD BY, PROMPT", 18, 90, lambda c, _: c.words, lambda c: 0),
)
COLUMNS: Mapping[str, Column[Cells]] = {column.name: column for column in _ALL}
_GRAPH_COLUMNS = Columns(
    COLUMNS, last="words", least_of_the_last=18, or_else="tree", seldom_used=("group",)
)


class GraphTable(LineTable[Cells]):
    """Shows what it was given last; `facts` says what is known of it now."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "screen.act('parent')", ACTIONS["parent"].words, show=False),
        Binding("right,l", "screen.act('child')", ACTIONS["child"].words, show=False),
    ]

    class Moved(Message):
        """Another line is under the cursor."""

    class Opened(Message):
        """The operator wants to see more of it."""

    def __init__(
        self,
        facts: Callable[[], Facts],
        *,
        ascii_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(_GRAPH_COLUMNS, ascii_only=ascii_only, clock=clock)
        self.fitting: Collection[str] | None = None  #: what a filter lets through; None: all
        self.has_groups = False  #: of any job that is shown
        self.lines: Sequence[GraphLine] = ()
        self._facts = facts
        self._places: dict[str, int] = {}
        self._at = 0
        self._widest = 0
        self._drawn: dict[str, Cells] = {}

    # -- what is told --------------------------------------------------------------------------

    def put(self, lines: Sequence[GraphLine], near: Callable[[GraphLine], str]) -> None:
        """Other lines; the cursor stays with its own, or where that is gone, `near` it."""
        if list(lines) == list(self.lines):
            self.freshen()
            return
        before = self.lines[self._at] if self.lines else None
        self.lines = lines
        self._places = {line.key: at for at, line in enumerate(lines)}
        if before is not None:
            found = self.line_of(before.key)
            found = self.line_of(near(before)) if found is None else found
            self._at = self._at if found is None else found
        self._at = self._on_a_row(min(self._at, len(lines) - 1), 1)
        self.lay_out()
        self.moved()

    def freshen(self) -> bool:
        """Draw those lines that look different now; whether there were any."""
        differs = False
        for at in self.in_sight():
            row = self.row_at(at)
            if self._drawn.get(row.line.key) != row:
                differs = True
                self.redraw_line(at)
        return differs

    def lay_out(self) -> None:
        self._widest = widest(self.lines, self.size.width)
        super().lay_out()

    # -- lines ---------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return len(self.lines)

    def row_at(self, line: int) -> Cells:
        found, facts = self.lines[line], self._facts()
        room = self.headings.get("tree", _LEAST)
        cells = cells_of(found, facts, room, step_in(self.size.width), ascii_only=self.ascii_only)
        if self.fitting is None or found.kind is not Kind.NODE:
            return cells
        return cells._replace(is_aside=found.name not in self.fitting)

    def name_of(self, row: Cells) -> str:
        return row.line.key

    def line_of(self, name: str) -> int | None:
        return self._places.get(name)

    def wide(self) -> Mapping[str, int]:
        most = max(_LEAST, int(self.size.width * _SHARE))
        return {"tree": max(_LEAST, min(self._widest, most))}

    @property
    def sorted_by(self) -> tuple[str, bool]:
        return "", False

    @property
    def used(self) -> Collection[str]:
        return COLUMNS if self.has_groups and self.size.width >= _ROOM_FOR_GROUPS else ()

    def style_of(self, row: Cells) -> str:
        return row.face.style if row.face is not None else "idle"

    def _line(self, row: Cells, is_cursor: bool, width: int, ground: str = "") -> Strip:
        if len(self._drawn) > _REMEMBERED:
            self._drawn.clear()
        self._drawn[row.line.key] = row
        if row.line.kind is Kind.HEAD:
            style = self._style("cursor") if is_cursor else self._style("", "head")
            text = clip(f" {row.words}", width)
            return Strip([Segment(text, style)]).adjust_cell_length(width, style)
        return super()._line(row, is_cursor, width, "dim" if row.is_aside else ground)

    # -- the cursor ----------------------------------------------------------------------------

    @property
    def row(self) -> Cells | None:
        """The one under the cursor."""
        return self.row_at(self._at) if self.lines else None

    @property
    def cursor_line(self) -> int | None:
        return self._at if self.lines else None

    def put_cursor(self, line: int) -> None:
        self._at = self._on_a_row(line, 1 if line >= self._at else -1)

    def _on_a_row(self, line: int, way: int) -> int:
        """Headings are jumped over; above the first line there is nothing but one."""
        line = max(0, min(line, self.rows - 1))
        if self.lines and self.lines[line].kind is Kind.HEAD:
            line += way if line else 1
        return max(0, min(line, self.rows - 1))

    def keep_cursor_in_sight(self) -> None:
        """With the heading over it, where that is the line before."""
        super().keep_cursor_in_sight()
        if self._at == 1 and self.scroll_offset.y == 1:
            self._scroll(0)

    def go_to(self, key: str) -> bool:
        """To the line of this key; False: it is not shown."""
        line = self.line_of(key)
        if line is not None:
            self.move(line)
        return line is not None

    def cursor_moved(self) -> None:
        self.post_message(self.Moved())

    def opened(self) -> None:
        self.post_message(self.Opened())
