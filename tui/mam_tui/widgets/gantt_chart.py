"""Lanes of bars over time, drawn line by line; which bars, and what time it is, it is told.

It looks at no clock and asks nobody, so that a past is drawn by it as well as the present.
Only what touches the window is ever looked at, and a line is drawn when it is seen.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mam_core.operations.bars import Bar, Dimension
from mam_core.operations.lanes import Lanes, LanesThen
from mam_core.safe_text import cell_width, clip, one_line, pad
from mam_tui.bars.cells import CURSOR, GRID, NOW, WAITING, Cell, Scene, cells_of, columns_of
from mam_tui.bars.rows import GanttRows, middle
from mam_tui.bars.window import TimeWindow
from mam_tui.faces import STYLES
from mam_tui.styles import ink
from mam_tui.widgets.moving import MOVING
from mam_tui.widgets.time_axis import TimeAxis

_NAME_MOST, _NAME_LEAST = 24, 6
#: Of the width, at most for the names of lanes.
_NAME_SHARE = 4
_LOOK = attrgetter("style", "turned")
NAMELESS = {
    Dimension.SESSION: "no session",
    Dimension.NODE: "no node",
    Dimension.GROUP: "no group",
    Dimension.AGENT: "no agent",
}


class GanttChart(ScrollView, can_focus=True):
    """`show` and `tick` tell it everything."""

    DEFAULT_CSS = """
    GanttChart { height: 1fr; background: $background; overflow-x: hidden; overflow-y: auto;
        scrollbar-size-vertical: 1; }
    GanttChart > .gantt--head { color: $text-muted; text-style: bold; }
    GanttChart > .gantt--name { color: $foreground; }
    GanttChart > .gantt--chosen { color: $text-accent; text-style: bold; }
    GanttChart > .gantt--grid { color: $foreground 15%; }
    GanttChart > .gantt--now { color: $text-accent; }
    GanttChart > .gantt--cursor {
        background: $block-cursor-background; color: $block-cursor-foreground; text-style: bold;
    }
    GanttChart > .gantt--waiting { color: $text-warning; }
    GanttChart > .gantt--working { color: $text-primary; }
    GanttChart > .gantt--done { color: $text-success; }
    GanttChart > .gantt--error { color: $text-error; }
    GanttChart > .gantt--warning { color: $text-warning; }
    GanttChart > .gantt--idle { color: $text-muted; }
    GanttChart > .gantt--blocked { color: $text-secondary; }
    GanttChart > .gantt--queued { color: $text; }
    GanttChart:nocolor > .gantt--cursor { text-style: bold underline; }
    GanttChart:nocolor > .gantt--grid { text-style: dim; }
    GanttChart:ansi > .gantt--grid { text-style: dim; }
    GanttChart:nocolor > .gantt--chosen { text-style: bold reverse; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"gantt--{name}" for name in (*STYLES, "head", "name", "chosen", GRID, NOW, CURSOR, WAITING)
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVING,
        Binding("home,g", "go_to(0)", "first lane", show=False),
        Binding("end,G", "go_to(-1)", "last lane", show=False),
        Binding("right", "step(1)", "next bar of the line", show=False),
        Binding("left", "step(-1)", "bar before it", show=False),
        Binding("l", "pan(0.25)", "later", show=False),
        Binding("h", "pan(-0.25)", "earlier", show=False),
        Binding("enter", "open", "open the job", show=False),
    ]

    class Moved(Message):
        """Another bar is under the cursor, or another time is seen."""

        def __init__(self, *, is_chosen: bool = False) -> None:
            super().__init__()
            self.is_chosen = is_chosen  #: by whoever looks, and not since the bars are others

    class Opened(Message):
        """The operator wants to see all of this job."""

        def __init__(self, job_id: str) -> None:
            super().__init__()
            self.job_id = job_id

    def __init__(self, *, ascii_only: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self.ascii_only = ascii_only
        self.by = Dimension.SESSION
        self.window = TimeWindow()
        self.now = 0.0
        self.cursor: tuple[str, int] | None = None
        self.lines_drawn = 0  #: for whoever measures
        self._lanes: Lanes | LanesThen = Lanes()
        self._rows = GanttRows(self._lanes, self.window, self.by, self.now)
        self._anchor = 0.0  #: the moment that the eye rests on, kept while lanes are passed
        self._wide = _NAME_LEAST
        self._styles: dict[tuple[str, bool], Style] = {}
        self._drawn: dict[int, object] = {}  #: what each line was drawn from

    # -- what is told --------------------------------------------------------------------------

    def show(self, lanes: Lanes | LanesThen, now: float) -> None:
        """These, at this time; only lines that look different are drawn."""
        self._lanes, self.now = lanes, now
        self.window.move_on(now)
        self.lay_out()

    def tick(self, now: float) -> None:
        """Only time has passed: what runs has grown, if that is to be seen at all."""
        before, self.now = self._scene(), now
        if self.window.move_on(now):
            self.lay_out()
            return
        after = self._scene()
        if before.axis.part(before.now) == after.axis.part(now):
            return
        moved = before.axis.column(before.now) != after.axis.column(now)
        for line in self._in_sight():
            if moved or self._rows[line].runs:
                self._redraw(line)

    def choose(self, by: Dimension) -> None:
        self.by = by
        self.lay_out(is_chosen=True)

    def put_cursor(self, job_id: str) -> None:
        """On the last bar of a job, if it is seen."""
        for bar in reversed(self._lanes.of(job_id)):
            if self._rows.line_of(bar.key) is not None:
                self._move(bar.key)
                return

    @property
    def bar(self) -> Bar | None:
        """The one under the cursor."""
        return self._rows.find(self.cursor)

    def jobs(self) -> list[str]:
        """Those that have a bar in the window, in the order of the lanes."""
        bars = (bar for line in range(len(self._rows)) for bar in self._rows[line].bars)
        return list(dict.fromkeys(bar.job_id for bar in bars))

    # -- laying out ----------------------------------------------------------------------------

    def lay_out(self, *, is_chosen: bool = False) -> None:
        line = self._rows.line_of(self.cursor)
        self._rows = GanttRows(self._lanes, self.window, self.by, self.now)
        self._measure()
        if self._rows and self._rows.line_of(self.cursor) is None:
            near = self._rows[min(line or 0, len(self._rows) - 1)]
            bar = near.nearest(self._anchor or self.now, self.window, self.now)
            self.cursor = bar.key
            self._anchor = self._anchor or middle(bar, self.window, self.now)
        self._keep_in_sight()
        scene = self._scene()
        for y in range(self.size.height):
            if self._drawn.get(y) != self._look(y, scene):
                self.refresh(Region(0, y, self.size.width, 1))
        self.post_message(self.Moved(is_chosen=is_chosen))

    def _measure(self) -> None:
        names = map(self._named, self._rows.names())
        most = max(_NAME_LEAST, min(_NAME_MOST, self.size.width // _NAME_SHARE))
        wanted = max([cell_width(f"by {self.by}"), *map(cell_width, names)]) + 1
        self._wide = min(most, wanted)
        self.virtual_size = Size(0, len(self._rows) + 1)

    def on_resize(self, event: events.Resize) -> None:
        self._measure()
        self._keep_in_sight()
        self.refresh()

    def _named(self, lane: str) -> str:
        return one_line(lane[:200]) if lane else NAMELESS[self.by]

    def _scene(self) -> Scene:
        width = max(1, self.scrollable_content_region.width - self._wide)
        axis = TimeAxis(self.window.begin, self.window.span, width)
        return Scene(axis, self.now, self.ascii_only)

    # -- drawing -------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()

    def _style(self, name: str, *, turned: bool = False) -> Style:
        """On our ground."""
        style = self._styles.get((name, turned))
        if style is None:
            style = self.rich_style
            if name == CURSOR:
                style += self.get_component_rich_style(f"gantt--{name}")
            elif name:
                style += ink(self, f"gantt--{name}")
            if turned:
                style += Style(reverse=True)
            self._styles[name, turned] = style
        return style

    def _look(self, y: int, scene: Scene) -> object:
        """All that a line is drawn from: while it is the same, so is the line."""
        axis, now = scene.axis, scene.now
        if y == 0:
            return self.by, self._wide, axis
        line, at = self.scroll_offset.y + y - 1, axis.column(now)
        if line >= len(self._rows):
            return self._wide, axis, at
        row = self._rows[line]
        cursor = self.cursor if self._rows.line_of(self.cursor) == line else None
        name = row.lane if row.is_first or y == 1 else None
        end = axis.part(now) if row.runs else 0
        return self._wide, axis, at, end, name, self.by, cursor, row.bars

    def render_line(self, y: int) -> Strip:
        width, base, scene = self.size.width, self._style(""), self._scene()
        self.lines_drawn += 1
        self._drawn[y] = self._look(y, scene)
        if y == 0:
            head = pad(f"by {self.by}", self._wide - 1) + " " + scene.axis.words()
            style = self._style("head")
            return Strip([Segment(head, style)]).adjust_cell_length(width, style)
        line = self.scroll_offset.y + y - 1
        if line >= len(self._rows):
            cells, name, style = scene.ground(), "", base
        else:
            row = self._rows[line]
            cells = cells_of(row.bars, scene, self.cursor)
            name = self._named(row.lane) if row.is_first or y == 1 else ""
            chosen = self._rows.line_of(self.cursor) == line
            if chosen and not name:
                name = ">" if self.ascii_only else "›"
            style = self._style("chosen" if chosen else "name")
        segments = [Segment(pad(clip(name, self._wide - 1), self._wide), style)]
        segments += self._painted(cells)
        return Strip(segments).adjust_cell_length(width, base)

    def _painted(self, cells: list[Cell]) -> list[Segment]:
        segments: list[Segment] = []
        for (name, turned), run in groupby(cells, key=_LOOK):
            text = "".join(cell.sign for cell in run)
            segments.append(Segment(text, self._style(name, turned=turned)))
        return segments

    def _in_sight(self) -> range:
        top = self.scroll_offset.y
        return range(top, min(len(self._rows), top + max(0, self.size.height - 1)))

    def _redraw(self, line: int) -> None:
        if line in self._in_sight():
            self.refresh(Region(0, line - self.scroll_offset.y + 1, self.size.width, 1))

    # -- going about ---------------------------------------------------------------------------

    @property
    def line(self) -> int:
        """Where the cursor is."""
        return self._rows.line_of(self.cursor) or 0

    def action_go(self, lines: int) -> None:
        if self._rows:
            at = max(0, min(self.line + lines, len(self._rows) - 1))
            anchor = self._anchor
            self._move(self._rows[at].nearest(anchor, self.window, self.now).key)
            self._anchor = anchor

    def action_page(self, pages: float) -> None:
        self.action_go(int(pages * max(1, self.size.height - 2)))

    def action_go_to(self, line: int) -> None:
        self.action_go((line if line >= 0 else len(self._rows)) - self.line)

    def action_step(self, by: int) -> None:
        """To the next bar of the line; where there is none, time goes on."""
        if not self._rows:
            self.action_pan(0.25 * by)
            return
        bars = self._rows[self.line].bars
        at = [bar.key for bar in bars].index(self.cursor or bars[0].key) + by
        if 0 <= at < len(bars):
            self._move(bars[at].key)
        else:
            self.action_pan(0.25 * by)

    def action_pan(self, share: float) -> None:
        self.window.pan(share)
        self.lay_out(is_chosen=True)

    def zoom(self, by: int) -> None:
        """Nearer or farther; the bar under the cursor stays where it is, if one can see it."""
        bar = self.bar
        self.window.zoom(by, middle(bar, self.window, self.now) if bar is not None else None)
        self.window.move_on(self.now)
        self.lay_out(is_chosen=True)

    def follow(self) -> None:
        self.window.follow(self.now)
        self.lay_out(is_chosen=True)

    def action_open(self) -> None:
        if (bar := self.bar) is not None:
            self.post_message(self.Opened(bar.job_id))

    def _move(self, key: tuple[str, int]) -> None:
        before, self.cursor = self.line, key
        self._redraw(before)
        self._redraw(self.line)
        if (bar := self.bar) is not None:
            self._anchor = middle(bar, self.window, self.now)
        self._keep_in_sight()
        self.post_message(self.Moved(is_chosen=True))

    def _keep_in_sight(self) -> None:
        if not self.size.height or not self._rows:
            return
        top, height, line = self.scroll_offset.y, max(1, self.size.height - 1), self.line
        if line < top or line >= top + height:
            to = line if line < top else line - height + 1
            # By force: until the next layout there may be no scroll bar, and it would be refused.
            self.scroll_to(y=to, animate=False, immediate=True, force=True)

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        line = self.scroll_offset.y + (at.y if at is not None else 0) - 1
        if at is None or not 0 <= line < len(self._rows):
            return
        scene = self._scene()
        for bar in self._rows[line].bars:
            if at.x - self._wide in columns_of(bar, scene):
                again = bar.key == self.cursor
                self._move(bar.key)
                if again and event.chain > 1:
                    self.action_open()
                return
