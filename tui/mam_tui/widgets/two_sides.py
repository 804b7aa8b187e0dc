"""Two texts side by side, scrolled as one; where there is no room for that, one below the other.

What is alike is dim. A sign between them, not only colour, says what is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip

from mam_tui.history.comparing import Pair
from mam_tui.widgets.detail.line_view import LineView
from mam_tui.widgets.detail.spans import Line

#: Below this they stand one below the other.
WIDE = 100
_ASIDE = 8
_MIDDLE = 3


class TwoSides(LineView):
    """Given pairs of lines."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "aside(-1)", "left", show=False),
        Binding("right,l", "aside(1)", "right", show=False),
    ]

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__()
        self._signs = ("<", ">", "!") if ascii_only else ("◂", "▸", "≠")
        self._pairs: Sequence[Pair] = ()
        self._stacked: list[tuple[Line, str]] = []
        self._aside = 0

    @property
    def is_wide(self) -> bool:
        return self.size.width >= WIDE

    def put(self, pairs: Sequence[Pair]) -> None:
        self._pairs = pairs
        self._stacked = [row for pair in pairs for row in self._rows_of(pair)]
        self._aside = 0
        self.measure()
        self.go_to(0)
        self.refresh()

    def _rows_of(self, pair: Pair) -> list[tuple[Line, str]]:
        if pair.alike:
            return [(pair.left or (), " ")]
        both = zip((pair.left, pair.right), self._signs, strict=False)
        return [(line, sign) for line, sign in both if line is not None]

    @property
    def rows(self) -> int:
        return len(self._pairs) if self.is_wide else len(self._stacked)

    def row(self, at: int) -> Line:
        """As plain text; what is drawn has both sides."""
        if not self.is_wide:
            return self._stacked[at][0]
        return (*(self._pairs[at].left or ()), *(self._pairs[at].right or ()))

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.refresh()

    # -- drawing -------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        at = self.scroll_offset.y + y
        if not self.rows or at >= self.rows:
            return super().render_line(y)
        self.lines_drawn += 1
        width, base = self.size.width, self.style_of("")
        if not self.is_wide:
            line, sign = self._stacked[at]
            head = Strip([Segment(f"{sign} ", self.style_of(self._kind(sign)))])
            body = self._side(line, width - 2, sign == " ")
            return Strip.join([head, body]).adjust_cell_length(width, base)
        pair = self._pairs[at]
        sign = self._between(pair)
        half = (width - _MIDDLE) // 2
        middle = Strip([Segment(f" {sign} ", self.style_of(self._kind(sign)))])
        left = self._side(pair.left, half, pair.alike)
        right = self._side(pair.right, width - _MIDDLE - half, pair.alike)
        return Strip.join([left, middle, right])

    def _between(self, pair: Pair) -> str:
        if pair.alike:
            return " "
        only_left, only_right, other = self._signs
        return only_left if pair.right is None else only_right if pair.left is None else other

    def _kind(self, sign: str) -> str:
        return {" ": "muted", self._signs[0]: "removed", self._signs[1]: "added"}.get(
            sign, "warning"
        )

    def _side(self, line: Line | None, width: int, alike: bool) -> Strip:
        base = self.style_of("")
        strip = Strip(
            [
                Segment(one.text, self.style_of("muted" if alike else one.style))
                for one in line or ()
                if one.text
            ]
        )
        return strip.crop(self._aside, self._aside + width).adjust_cell_length(width, base)

    def action_aside(self, steps: int) -> None:
        aside = max(0, min(4000, self._aside + steps * _ASIDE))
        if aside != self._aside:
            self._aside = aside
            self.refresh()
