"""A ring of lines, one row each, that follows its end until somebody scrolls up.

A line is formed when it is drawn, so a thousand that nobody sees cost next to nothing.
When the ring lets old lines go, what is being read stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip

from mam_core.safe_text import cell_width
from mam_tui.widgets.detail.line_view import LineView
from mam_tui.widgets.detail.spans import Line

#: Lines that are kept.
RING = 5000
#: Letting go is done in bulk.
_SLACK = 500
_ASIDE = 8
_KEPT = 512


class Log(LineView):
    """Items in, rows out; `form` makes the one from the other."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "aside(-1)", "left", show=False),
        Binding("right,l", "aside(1)", "right", show=False),
    ]

    def __init__(
        self,
        form: Callable[[Any], Line] = lambda item: item,
        *,
        follows: bool = True,
        ring: int = RING,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._form = form
        self._ring = ring
        self._follows = follows
        self._items: list[Any] = []
        self._gone = 0  #: items that the ring has let go
        self._formed: dict[int, Line] = {}
        self._aside = 0
        self._widest = 0
        self.following = follows
        self.below = 0  #: how many came while the end was not in sight

    @property
    def rows(self) -> int:
        return len(self._items)

    @property
    def let_go(self) -> int:
        return self._gone

    def row(self, at: int) -> Line:
        number = self._gone + at
        line = self._formed.get(number)
        if line is None:
            if len(self._formed) >= _KEPT:
                self._formed.clear()
            line = self._formed[number] = self._form(self._items[at])
            self._widest = max(self._widest, sum(cell_width(span.text) for span in line))
        return line

    def clear(self) -> None:
        self._items.clear()
        self._formed.clear()
        self._gone = self.below = self._aside = self._widest = 0
        self.following = self._follows
        self.measure()
        self.go_to(0)
        self.refresh()

    def extend(self, items: Iterable[Any], *, instead_of_last: bool = False) -> None:
        """More lines; the first of them may stand for the last one, which was not whole."""
        new = list(items)
        if instead_of_last and self._items:
            self._items.pop()
            self._formed.pop(self._gone + len(self._items), None)
        elif not new:
            return
        was_seen = len(self._items) - self.scroll_offset.y < self.size.height
        was_empty = not self._items
        self._items += new
        dropped = self._drop()
        if not self.following:
            self.below += len(new)
        top = self.scroll_offset.y
        self.measure()
        if self.following:
            self.go_to(self.rows)
        elif dropped:
            self.go_to(max(0, top - dropped))
        if was_seen or was_empty or self.following:
            self.refresh()

    def _drop(self) -> int:
        if len(self._items) <= self._ring + _SLACK:
            return 0
        dropped = len(self._items) - self._ring
        del self._items[:dropped]
        self._gone += dropped
        return dropped

    # -- following -------------------------------------------------------------------------

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        if self._follows:
            self.following = new >= self.max_scroll_y
            if self.following:
                self.below = 0

    def on_resize(self, event: events.Resize) -> None:
        was = self.following
        super().on_resize(event)
        if was:
            self.go_to(self.rows)
            self.following = True

    # -- sideways --------------------------------------------------------------------------

    def action_aside(self, steps: int) -> None:
        most = max(0, self._widest - self.size.width)
        aside = max(0, min(most, self._aside + steps * _ASIDE))
        if aside != self._aside:
            self._aside = aside
            self.refresh()

    def _placed(self, strip: Strip) -> Strip:
        return strip.crop(self._aside) if self._aside else strip
