"""Rows drawn on demand: what the pages and the logs of the detail panel have in common."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mam_core.safe_text import one_line
from mam_tui.styles import ink
from mam_tui.widgets.detail.spans import Line, Paragraph, Span, wrap
from mam_tui.widgets.moving import MOVING

#: What a span may be styled as.
STYLES = (
    *("muted", "key", "title", "good", "bad", "warning", "news"),
    *("added", "removed", "hunk", "file"),
)


class LineView(ScrollView, can_focus=True):
    """Knows how many rows there are, and draws those that are seen."""

    DEFAULT_CSS = """
    LineView {
        height: 1fr; background: $background; overflow-x: hidden; overflow-y: auto;
        scrollbar-size-vertical: 1;
    }
    LineView > .line-view--muted { color: $text-muted; }
    LineView > .line-view--key { color: $text-primary; }
    LineView > .line-view--title { color: $foreground; text-style: bold; }
    LineView > .line-view--good { color: $text-success; }
    LineView > .line-view--bad { color: $text-error; text-style: bold; }
    LineView > .line-view--warning { color: $text-warning; text-style: bold; }
    LineView > .line-view--news { color: $text-accent; }
    LineView > .line-view--added { color: $text-success; }
    LineView > .line-view--removed { color: $text-error; }
    LineView > .line-view--hunk { color: $text-accent; }
    LineView > .line-view--file { color: $foreground; text-style: bold; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"line-view--{name}" for name in STYLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVING,
        Binding("home,g", "first", "first line", show=False),
        Binding("end,G", "last", "last line, and follow", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines_drawn = 0  #: for whoever measures
        self._why = ""
        self._drawn_styles: dict[str, Style] = {}

    # -- what a kind of view knows ---------------------------------------------------------

    @property
    def rows(self) -> int:
        """How many there are, as far as that is known."""
        raise NotImplementedError

    def row(self, at: int) -> Line:
        raise NotImplementedError

    # -- what is shown ---------------------------------------------------------------------

    def say(self, why: str) -> None:
        """Why there is nothing to show; seen as long as there is nothing."""
        if why != self._why:
            self._why = why
            if not self.rows:
                self.refresh()

    def measure(self) -> None:
        """The number of rows is another."""
        self.virtual_size = Size(0, self.rows)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._drawn_styles.clear()

    def render_line(self, y: int) -> Strip:
        self.lines_drawn += 1
        width, base = self.size.width, self.style_of("")
        at = self.scroll_offset.y + y
        if self.rows:
            line = self.row(at) if at < self.rows else ()
        else:
            line = self._reason(y, width)
        segments = [Segment(span.text, self.style_of(span.style)) for span in line if span.text]
        return self._placed(Strip(segments)).adjust_cell_length(width, base)

    def _placed(self, strip: Strip) -> Strip:
        return strip

    def _reason(self, y: int, width: int) -> Line:
        words = Paragraph((Span(one_line(self._why), "muted"),))
        rows = wrap(words, max(2, width - 2)) if self._why else []
        return (Span(" "), *rows[y]) if y < len(rows) else ()

    def style_of(self, kind: str | Style) -> Style:
        """A span's, on our ground; added up once for each name."""
        if isinstance(kind, Style):
            return self.style_of("") + kind
        style = self._drawn_styles.get(kind)
        if style is None:
            style = self.rich_style
            if kind:
                style += ink(self, f"line-view--{kind}")
            self._drawn_styles[kind] = style
        return style

    # -- going about -----------------------------------------------------------------------

    def action_go(self, rows: int) -> None:
        self.go_to(self.scroll_offset.y + rows)

    def action_page(self, pages: float) -> None:
        self.action_go(int(pages * max(1, self.size.height - 1)))

    def action_first(self) -> None:
        self.go_to(0)

    def action_last(self) -> None:
        self.go_to(self.rows)

    def go_to(self, row: int) -> None:
        # By force: until the next layout there may be no scroll bar, and it would be refused.
        self.scroll_to(y=row, animate=False, immediate=True, force=True)

    def on_resize(self, event: events.Resize) -> None:
        self.measure()
