"""Columns out of blocks, and the page that shows panels of them in a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, zip_longest

from textual import events
from textual.geometry import Region

from mam_core.safe_text import cell_width
from mam_tui.widgets.detail.line_view import LineView
from mam_tui.widgets.detail.spans import Line, Span

_RISING = " ▁▂▃▄▅▆▇█"
_RISING_ASCII = " ..::::##"
_PARTS = 8
_SHADE, _SHADE_ASCII = "░", "-"
_GAP = 2
#: From this width on there are two panels side by side, and from that on three.
_TWO, _THREE = 96, 160
_HIGH_MOST = 20

Values = Sequence[float]


def stretched(values: Values, width: int) -> list[float]:
    """One value for each column; where several fall into one, the highest."""
    size = len(values)
    return [
        max(values[at * size // width : max(at * size // width + 1, (at + 1) * size // width)])
        for at in range(width)
    ]


def _parts(value: float, most: float, cells: int) -> int:
    """How high; what is not nothing is seen."""
    if value <= 0 or most <= 0:
        return 0
    return max(1, round(min(1.0, value / most) * cells * _PARTS))


def columns(
    values: Values,
    width: int,
    height: int,
    most: float,
    *,
    style: str = "key",
    behind: Values = (),
    ascii_only: bool = False,
) -> list[Line]:
    """Lines from the top down. `behind` are higher values, drawn as a shade above the others."""
    signs = _RISING_ASCII if ascii_only else _RISING
    shade = _SHADE_ASCII if ascii_only else _SHADE
    front = [_parts(value, most, height) for value in stretched(values, width)]
    back = [_parts(value, most, height) for value in stretched(behind or values, width)]
    lines = []
    for row in range(height - 1, -1, -1):
        cells = []
        for solid, shaded in zip(front, back, strict=True):
            part = max(0, min(_PARTS, solid - row * _PARTS))
            if part:
                cells.append((signs[part], style))
            elif shaded > row * _PARTS + _PARTS // 2 or (shaded and not row and not solid):
                cells.append((shade, "muted"))
            else:
                cells.append((" ", ""))
        lines.append(_together(cells))
    return lines


def _together(cells: Iterable[tuple[str, str]]) -> Line:
    """Neighbours of one look are one piece of text: pieces are what costs."""
    return tuple(
        Span("".join(sign for sign, _ in run), style)
        for style, run in groupby(cells, key=lambda cell: cell[1])
    )


def width_of(line: Line) -> int:
    return sum(cell_width(span.text) for span in line)


def side_by_side(panels: Sequence[Sequence[Line]], number: int, width: int) -> list[Line]:
    """Panels of equal width in rows of so many."""
    lines: list[Line] = []
    for first in range(0, len(panels), number):
        for parts in zip_longest(*panels[first : first + number], fillvalue=()):
            line: list[Span] = []
            for part in parts:
                line += [*part, Span(" " * (width - width_of(part) + _GAP))]
            lines.append(tuple(line))
        lines.append(())
    return lines[:-1]


class ChartPage(LineView):
    """Asks for its panels when their size or what they show is another."""

    #: How many, how wide, how high the plot may be: what panels are made for.
    Make = Callable[[int, int], Sequence[Sequence[Line]]]

    def __init__(self, make: ChartPage.Make, panels: int, around: int) -> None:
        """`around` is what a panel has besides its plot."""
        super().__init__()
        self._make = make
        self._panels = panels
        self._around = around
        self._lines: list[Line] = []

    @property
    def rows(self) -> int:
        return len(self._lines)

    def row(self, at: int) -> Line:
        return self._lines[at]

    def on_resize(self, event: events.Resize) -> None:
        self.draw()

    def draw(self) -> None:
        """Only lines that are different are drawn again."""
        whole = self.scrollable_content_region
        if whole.width < 4 or not self.is_attached:
            return
        number = 1 if whole.width < _TWO else 2 if whole.width < _THREE else 3
        width = (whole.width + _GAP) // number - _GAP
        stacked = -(-self._panels // number)
        height = max(3, min(_HIGH_MOST, whole.height // stacked - self._around - 1))
        before, self._lines = self._lines, side_by_side(self._make(width, height), number, width)
        if len(before) != len(self._lines):
            self.measure()
            self.refresh()
            return
        top = self.scroll_offset.y
        for at, (old, new) in enumerate(zip(before, self._lines, strict=True)):
            if old != new and 0 <= at - top < self.size.height:
                self.refresh(Region(0, at - top, self.size.width, 1))
