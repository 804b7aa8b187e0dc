"""A table whose lines are drawn on demand: what the tables of jobs and of sessions have in common.

A heading, one line for each row, a cursor. Which rows there are, and where the
cursor is, belongs to a model; here are only lines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar, Generic, NamedTuple, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mam_core.safe_text import cell_width
from mam_tui.faces import STYLES
from mam_tui.laying import GAP, Columns, Laid, Look, cell, headings
from mam_tui.styles import ink
from mam_tui.widgets.moving import MOVING

R = TypeVar("R")

#: Before the first column: the mark, and a space.
MARGIN = 2


class _Held(NamedTuple):
    """The row that the eye rests on, and how far below the heading it is drawn."""

    name: str
    below: int
    is_cursor: bool


class LineTable(ScrollView, Generic[R], can_focus=True):
    """To be told by a model what there is to draw."""

    DEFAULT_CSS = """
    LineTable { height: 1fr; background: $background; overflow-x: hidden; overflow-y: auto; }
    LineTable > .line-table--head { color: $text-muted; text-style: bold; }
    LineTable > .line-table--cursor {
        background: $block-cursor-background; color: $block-cursor-foreground; text-style: bold;
    }
    LineTable > .line-table--marked { color: $text-accent; text-style: bold; }
    LineTable > .line-table--dim { color: $text-muted; }
    LineTable:nocolor > .line-table--cursor { text-style: bold reverse; }
    LineTable:nocolor > .line-table--dim { text-style: dim; }
    LineTable > .line-table--waiting { color: $text-warning; text-style: bold; }
    LineTable > .line-table--error { color: $text-error; }
    LineTable > .line-table--warning { color: $text-warning; }
    LineTable > .line-table--working { color: $text-success; }
    LineTable > .line-table--idle { color: $text-muted; }
    LineTable > .line-table--blocked { color: $text-secondary; }
    LineTable > .line-table--queued { color: $text; }
    LineTable > .line-table--done { color: $text-success; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"line-table--{name}" for name in (*STYLES, "head", "cursor", "marked", "dim")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVING,
        Binding("home,g", "go_to(0)", "first", show=False),
        Binding("end,G", "go_to(-1)", "last", show=False),
        Binding("enter", "open", "open", show=False),
    ]

    stale: var[bool] = var(False)  #: what is shown may be old: everything is drawn dim

    def __init__(
        self,
        columns: Columns[R],
        *,
        ascii_only: bool = False,
        clock: Callable[[], float] = time.time,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.columns: tuple[str, ...] = ()  #: the operator's own choice
        self.ascii_only = ascii_only
        self.lines_drawn = 0  #: for whoever measures
        self._all = columns
        self._clock = clock
        self._laid: list[Laid[R]] = []
        self._used: Collection[str] = frozenset()
        self._styles: dict[tuple[str, str], Style] = {}
        self._held: _Held | None = None

    # -- what a model knows --------------------------------------------------------------------

    @property
    def rows(self) -> int:
        raise NotImplementedError

    def row_at(self, line: int) -> R:
        raise NotImplementedError

    def name_of(self, row: R) -> str:
        """By which it is found again when lines have moved; empty: it is not looked for."""
        return ""

    def line_of(self, name: str) -> int | None:
        """Where the row of this name stands now; None: it is gone."""
        return None

    @property
    def cursor_line(self) -> int | None:
        raise NotImplementedError

    def put_cursor(self, line: int) -> None:
        """To this line, or as near to it as can be."""
        raise NotImplementedError

    @property
    def sorted_by(self) -> tuple[str, bool]:
        """A column's name, and whether it is the other way round."""
        raise NotImplementedError

    @property
    def used(self) -> Collection[str]:
        """Columns in which something stands."""
        raise NotImplementedError

    def wide(self) -> Mapping[str, int]:
        """Columns that are wider now than they say."""
        return {}

    def style_of(self, row: R) -> str:
        """Of its state: the name of a component class."""
        raise NotImplementedError

    def is_marked(self, row: R) -> bool:
        return False

    # -- what becomes of it --------------------------------------------------------------------

    def cursor_moved(self) -> None:
        """Another row is under the cursor."""

    def opened(self) -> None:
        """The operator wants to see all of the row under the cursor."""

    def sort_asked(self, column: str) -> None:
        """A heading was clicked."""

    # -- what is told --------------------------------------------------------------------------

    def redraw_line(self, line: int | None) -> None:
        """One line, if it is visible."""
        y = -1 if line is None else line - self.scroll_offset.y + 1
        if 1 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def redraw_named(self, names: Collection[str]) -> None:
        """The lines of these rows, of those that are seen: however many they are."""
        for line in self.in_sight():
            if self.name_of(self.row_at(line)) in names:
                self.redraw_line(line)

    def moved(self) -> None:
        """Lines have come, gone or changed places; what is looked at stays where it is seen."""
        self.virtual_size = Size(0, self.rows + 1)
        if self._used != self.used:
            self.lay_out()
        held = self._held
        line = None if held is None else self.line_of(held.name)
        # At the very top stays at the very top: what comes there is meant to be seen.
        if held is not None and line is not None and self.scroll_offset.y:
            self._scroll(line - held.below)
        if held is None or held.is_cursor or line is None:
            self.keep_cursor_in_sight()
        self._hold()
        self.refresh()

    def _hold(self) -> None:
        """The cursor where it is seen, else (the wheel was turned) the first line that is."""
        top, cursor = self.scroll_offset.y, self.cursor_line
        if cursor is not None and top <= cursor < top + self.size.height - 1:
            self._held = _Held(self.name_of(self.row_at(cursor)), cursor - top, True)
        elif top < self.rows:
            self._held = _Held(self.name_of(self.row_at(top)), 0, False)
        else:
            self._held = None

    def in_sight(self) -> range:
        """The lines that are seen."""
        top = self.scroll_offset.y
        return range(top, min(self.rows, top + self.size.height))

    def choose_columns(self, names: Sequence[str]) -> None:
        self.columns = tuple(names)
        self.lay_out()
        self.refresh()

    @property
    def shows_clock(self) -> bool:
        """Something in it changes with time alone."""
        return any(laid.column.by_clock for laid in self._laid)

    # -- drawing -------------------------------------------------------------------------------

    def on_resize(self, event: events.Resize) -> None:
        self.lay_out()
        self.moved()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()

    def lay_out(self) -> None:
        self._used = frozenset(self.used)
        room = self.scrollable_content_region.width - MARGIN
        self._laid = self._all.laid_out(max(0, room), self.columns, self.wide(), self._used)

    def _style(self, ground: str = "", name: str = "") -> Style:
        """Of writing on a ground: the cursor's, a dim one, or the usual. Added up once: that is
        what most of a line's time would go into."""
        style = self._styles.get((ground, name))
        if style is None:
            style = self.rich_style
            if ground == "cursor":  # the one that has a colour of its own
                style += self.get_component_rich_style("line-table--cursor")
            elif ground:
                style += ink(self, f"line-table--{ground}")
            if name:
                style += ink(self, f"line-table--{name}")
            self._styles[ground, name] = style
        return style

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            return self._head(width)
        line = self.scroll_offset.y + y - 1
        if line >= self.rows:
            return Strip.blank(width, self._style())
        self.lines_drawn += 1
        return self._line(self.row_at(line), line == self.cursor_line, width)

    def _head(self, width: int) -> Strip:
        text = " " * MARGIN + headings(self._laid, *self.sorted_by, ascii_only=self.ascii_only)
        style = self._style("", "head")
        return Strip([Segment(text, style)]).adjust_cell_length(width, style)

    def _line(self, row: R, is_cursor: bool, width: int, ground: str = "") -> Strip:
        ground = "cursor" if is_cursor else "dim" if self.stale else ground
        base = self._style(ground)
        marked = self.is_marked(row)
        mark = ("*" if self.ascii_only else "▌") if marked else " "
        segments = [Segment(f"{mark} ", self._style(ground, "marked") if marked else base)]
        look = Look(self._clock(), self.ascii_only)
        at = 0
        plain: list[str] = []  # cells of one look are one piece of text: pieces are what costs
        for laid in self._laid:
            text = cell(laid, row, look)
            room = " " * (laid.width - cell_width(text))
            plain.append(" " * (laid.at - at))
            # On the cursor's own colour a state's might not be readable; glyph and word are.
            if laid.column.name == "state" and not self.stale and not is_cursor:
                segments.append(Segment("".join(plain), base))
                segments.append(Segment(text + room, self._style(ground, self.style_of(row))))
                plain.clear()
            else:
                plain.append(room + text if laid.column.right else text + room)
            at = laid.at + laid.width
        segments.append(Segment("".join(plain), base))
        return Strip(segments, MARGIN + at).adjust_cell_length(width, base)

    # -- the cursor ----------------------------------------------------------------------------

    def action_go(self, lines: int) -> None:
        self.move((self.cursor_line or 0) + lines)

    def action_page(self, pages: float) -> None:
        self.action_go(int(pages * max(1, self.size.height - 2)))

    def action_go_to(self, line: int) -> None:
        self.move(line if line >= 0 else self.rows - 1)

    def action_open(self) -> None:
        if self.cursor_line is not None:
            self.opened()

    def move(self, line: int) -> None:
        before = self.cursor_line
        self.put_cursor(line)
        if self.cursor_line == before:
            return
        self.redraw_line(before)
        self.redraw_line(self.cursor_line)
        self.keep_cursor_in_sight()
        self._hold()
        self.cursor_moved()

    def keep_cursor_in_sight(self) -> None:
        line = self.cursor_line
        if line is None or not self.size.height:
            return
        top, height = self.scroll_offset.y, max(1, self.size.height - 1)
        if line < top:
            self._scroll(line)
        elif line >= top + height:
            self._scroll(line - height + 1)

    def _scroll(self, line: int) -> None:
        # By force: until the next layout there may be no scroll bar, and it would be refused.
        self.scroll_to(y=line, animate=False, immediate=True, force=True)

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        self._hold()
        self.refresh()

    def watch_stale(self, was: bool, now: bool) -> None:
        self.refresh()

    # -- the mouse -----------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if at is None:
            return
        if at.y == 0:
            if (column := self._column_at(at.x - MARGIN)) is not None:
                self.sort_asked(column)
            return
        line = self.scroll_offset.y + at.y - 1
        if line >= self.rows:
            return
        again = line == self.cursor_line
        self.move(line)
        if again and event.chain > 1:
            self.action_open()

    def as_text(self, row: R) -> str:
        """The cells of a row whole, with a tab between them."""
        look = Look(self._clock(), self.ascii_only)
        return "\t".join(laid.column.text(row, look) for laid in self._laid)

    def _column_at(self, x: int) -> str | None:
        for laid in self._laid:
            if laid.at <= x < laid.at + laid.width + GAP:
                return laid.column.name
        return None

    @property
    def headings(self) -> Mapping[str, int]:
        """Which columns are shown, and how wide."""
        return {laid.column.name: laid.width for laid in self._laid}
