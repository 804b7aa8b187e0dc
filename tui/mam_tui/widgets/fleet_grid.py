"""A grid of agents' screens: of each a line that says how it stands, and the end of its screen.

One widget for all of them, drawn by lines. A line of a screen is made once and kept until it is
another one, so that sixteen screens of which one line changes cost one line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from mam_core.safe_text import cell_width, clip, one_line
from mam_tui.faces import STYLES
from mam_tui.fleet.choice import Fleet
from mam_tui.fleet.places import columns_for, places
from mam_tui.sessions.reasons import no_screen
from mam_tui.sessions.rows import SessionRow
from mam_tui.styles import ink
from mam_tui.widgets.detail.pane import Sight
from mam_tui.widgets.detail.sgr import PLAIN, parse_all
from mam_tui.widgets.detail.spans import Line, Paragraph, Span, wrap

_LOOKING = "looking …"
#: Where a screen has fewer columns, the name stands before the word, in every title alike.
_NARROW = 30
#: Of a question more is never seen in a title.
_MOST_SAID = 400


class Title(NamedTuple):
    """What the line above a screen says; another one is another line."""

    row: SessionRow
    is_focused: bool
    is_marked: bool

    def words(self) -> tuple[str, str, str, str, str]:
        row = self.row
        said = one_line(row.says[:_MOST_SAID])
        return row.word, row.name, row.job_id, said, f"{self.is_focused}{self.is_marked}"


class _Cell:
    """One place of the grid."""

    def __init__(self, title: Title, place: Region) -> None:
        self.title = title
        self.place = place
        self.lines: Sequence[Line] = ()  #: of the screen, those that there is room for
        self.drawn: dict[int, Strip] = {}  #: by line

    @property
    def room(self) -> int:
        return max(0, self.place.height - 1)


class FleetGrid(Widget, can_focus=True):
    """Shows a page of a fleet."""

    DEFAULT_CSS = """
    FleetGrid { height: 1fr; background: $background; }
    FleetGrid > .fleet-grid--title { background: $panel; color: $foreground; }
    FleetGrid > .fleet-grid--focused {
        background: $block-cursor-background; color: $block-cursor-foreground; text-style: bold;
    }
    FleetGrid:nocolor > .fleet-grid--focused { text-style: bold reverse; }
    FleetGrid > .fleet-grid--edge { color: $text-muted; }
    FleetGrid > .fleet-grid--muted { color: $text-muted; }
    FleetGrid > .fleet-grid--waiting { color: $text-warning; text-style: bold; }
    FleetGrid > .fleet-grid--error { color: $text-error; }
    FleetGrid > .fleet-grid--warning { color: $text-warning; }
    FleetGrid > .fleet-grid--working { color: $text-success; }
    FleetGrid > .fleet-grid--idle { color: $text-muted; }
    FleetGrid > .fleet-grid--blocked { color: $text-secondary; }
    FleetGrid > .fleet-grid--queued { color: $text; }
    FleetGrid > .fleet-grid--done { color: $text-success; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"fleet-grid--{name}" for name in (*STYLES, "title", "focused", "edge", "muted")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "go(0, 1)", "down", show=False),
        Binding("up,k", "go(0, -1)", "up", show=False),
        Binding("left,h", "go(-1, 0)", "left", show=False),
        Binding("right,l", "go(1, 0)", "right", show=False),
        Binding("pagedown,ctrl+f,ctrl+d", "page(1)", "next page", show=False),
        Binding("pageup,ctrl+b,ctrl+u", "page(-1)", "page before", show=False),
        Binding("home,g", "go_to(0)", "first", show=False),
        Binding("end,G", "go_to(-1)", "last", show=False),
    ]

    class Moved(Message):
        """The focus is on another session."""

    class Opened(Message):
        """The operator wants to see what is done in it."""

    def __init__(self, fleet: Fleet, *, ascii_only: bool = False) -> None:
        super().__init__()
        self.fleet = fleet
        self.ascii_only = ascii_only
        self.lines_drawn = 0  #: for whoever measures
        self._cells: list[_Cell] = []
        self._sights: dict[str, Sight] = {}
        self._styles: dict[str, Style] = {}

    # -- what is told --------------------------------------------------------------------------

    def settle(self) -> None:
        """The page as it is now; only what looks different is drawn."""
        fleet = self.fleet
        rows, at = fleet.page_rows(), fleet.at
        focused = fleet.rows[at].name if at is not None else None
        titles = [Title(row, row.name == focused, row.name in fleet.marks) for row in rows]
        shown = {row.pane_id for row in rows if row.pane_id}
        self._sights = {one: sight for one, sight in self._sights.items() if one in shown}
        if [cell.title.row.name for cell in self._cells] != [row.name for row in rows]:
            self._lay_out(titles)
            return
        for cell, title in zip(self._cells, titles, strict=True):
            before, cell.title = cell.title, title
            if before.words() != title.words():
                self._redraw(cell, 0)
            if before.row.pane_id != title.row.pane_id or not title.row.pane_id:
                self._fill(cell)

    def see(self, sights: Mapping[str, Sight]) -> None:
        """What some of the screens show now."""
        for cell in self._cells:
            pane_id = cell.title.row.pane_id
            if pane_id in sights:
                self._sights[pane_id] = sights[pane_id]
                self._fill(cell)

    @property
    def is_waiting(self) -> bool:
        """For something that was never seen yet."""
        panes = {cell.title.row.pane_id for cell in self._cells} - {""}
        return not panes <= set(self._sights)

    def _lay_out(self, titles: Sequence[Title]) -> None:
        room = places(len(titles), self.size.width, self.size.height)
        self._cells = [_Cell(*both) for both in zip(titles, room, strict=True)]
        for cell in self._cells:
            self._fill(cell)
        self.refresh()

    def _fill(self, cell: _Cell) -> None:
        sight = self._sights.get(cell.title.row.pane_id)
        if sight is not None and sight.lines:
            lines: Sequence[Line] = parse_all(PLAIN, sight.lines)[0][-cell.room :]
        else:
            said = no_screen(cell.title.row) or (_LOOKING if sight is None else sight.words)
            words = Paragraph((Span(one_line(said), "muted"),))
            lines = wrap(words, max(2, cell.place.width)) if said else ()
        before, cell.lines = cell.lines, lines[: cell.room]
        for at in range(max(len(before), len(cell.lines))):
            if before[at : at + 1] != cell.lines[at : at + 1]:
                self._redraw(cell, at + 1)

    def _redraw(self, cell: _Cell, line: int) -> None:
        cell.drawn.pop(line, None)
        if line < cell.place.height:
            self.refresh(Region(cell.place.x, cell.place.y + line, cell.place.width, 1))

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out([cell.title for cell in self._cells])

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()
        for cell in self._cells:
            cell.drawn.clear()

    # -- drawing -------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        strips, at = [], 0
        for cell in self._cells:
            place = cell.place
            if not place.width or not place.y <= y < place.bottom:
                continue
            if place.x > at:
                edge = "|" if self.ascii_only else "│"
                strips.append(Strip([Segment(edge, base + self._style("edge"))], 1))
            strips.append(self._line(cell, y - place.y, base))
            at = place.right
        return Strip.join(strips).adjust_cell_length(width, base)

    def _line(self, cell: _Cell, line: int, base: Style) -> Strip:
        drawn = cell.drawn.get(line)
        if drawn is None:
            self.lines_drawn += 1
            if line == 0:
                drawn = self._title(cell.title, cell.place.width)
            else:
                spans = cell.lines[line - 1] if line <= len(cell.lines) else ()
                segments = [Segment(one.text, base + self._of(one)) for one in spans if one.text]
                drawn = Strip(segments).adjust_cell_length(cell.place.width, base)
            cell.drawn[line] = drawn
        return drawn

    def _title(self, title: Title, width: int) -> Strip:
        row = title.row
        ground = self.get_component_rich_style(
            "fleet-grid--focused" if title.is_focused else "fleet-grid--title"
        )
        focus = (">" if self.ascii_only else "»") if title.is_focused else " "
        mark = ("*" if self.ascii_only else "▌") if title.is_marked else " "
        glyph = row.face.ascii if self.ascii_only else row.face.glyph
        # On the colour of the focus a state's might not be readable; glyph and word are.
        state = ground if title.is_focused else ground + self._style(row.face.style)
        head, words, gap = f"{focus}{mark}{glyph} {row.word}  ", [row.name], "  "
        if min(cell.place.width for cell in self._cells) < _NARROW:
            # The glyph says it, too, and who it is nothing else does.
            head, words, gap = f"{focus}{mark}{glyph} ", [row.name, row.word], " "
        parts = (one_line(part) for part in (*words, row.job_id, row.says[:_MOST_SAID]))
        room = width - cell_width(head)
        said = clip(gap.join(filter(None, parts)), room)
        # Also where there is only one colour it is to be seen where a screen begins.
        rule = ("-" if self.ascii_only else "─") * (room - cell_width(said) - 1)
        edge = ground if title.is_focused else ground + self._style("edge")
        pieces = [
            Segment(head[:2], ground),
            Segment(head[2:], state),
            Segment(f"{said} ", ground),
            Segment(rule, edge),
        ]
        return Strip(pieces).adjust_cell_length(width, ground)

    def _of(self, span: Span) -> Style:
        if isinstance(span.style, Style):
            return span.style
        return self._style(span.style) if span.style else Style()

    def _style(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            style = self._styles[name] = ink(self, f"fleet-grid--{name}")
        return style

    # -- going about ---------------------------------------------------------------------------

    def action_go(self, right: int, down: int) -> None:
        self.fleet.go(right, down, columns_for(len(self._cells)))
        self._moved()

    def action_page(self, pages: int) -> None:
        self.fleet.turn(pages)
        self._moved()

    def action_go_to(self, place: int) -> None:
        self.fleet.go_to(place if place >= 0 else len(self.fleet.rows))
        self._moved()

    def _moved(self) -> None:
        self.settle()
        self.post_message(self.Moved())

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        for number, cell in enumerate(self._cells):
            if at is not None and cell.place.contains_point(at):
                self.action_go_to(self.fleet.page * self.fleet.per_page + number)
                if event.chain > 1:
                    self.post_message(self.Opened())
                return
