"""A text of paragraphs, broken to the width of the view; a million of them stay as fast as ten.

Only what is seen is broken into rows at once. How long the whole of it is, which the
scroll bar needs, is found out afterwards in slices of a few milliseconds.
"""

from __future__ import annotations

import time
from array import array
from asyncio import TimerHandle
from bisect import bisect_right
from collections.abc import Sequence

from textual import events

from mam_tui.soon import soon
from mam_tui.widgets.detail.line_view import LineView
from mam_tui.widgets.detail.spans import Line, Paragraph, height, wrap

_SLICE_SEC = 0.004
_PAUSE_SEC = 0.02
_KEPT = 256


class Page(LineView):
    """Shows paragraphs from the top."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._paragraphs: Sequence[Paragraph] = ()
        self._starts = array("q")  #: the first row of each paragraph that was measured
        self._rows = 0  #: of those
        self._width = 0
        self._broken: dict[int, list[Line]] = {}
        self._timer: TimerHandle | None = None
        self._wants_end = False

    def put(self, paragraphs: Sequence[Paragraph]) -> None:
        """Another text, from its beginning; the same text again costs nothing and moves nothing."""
        if type(paragraphs) is type(self._paragraphs) and paragraphs == self._paragraphs:
            return
        top = self.scroll_offset.y if self._paragraphs else 0
        self._paragraphs = paragraphs
        self._break_anew(top)

    def clear(self) -> None:
        self._paragraphs = ()
        self._break_anew(0)

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def is_measured(self) -> bool:
        return len(self._starts) == len(self._paragraphs)

    def row(self, at: int) -> Line:
        which = bisect_right(self._starts, at) - 1
        rows = self._broken.get(which)
        if rows is None:
            if len(self._broken) >= _KEPT:
                self._broken.clear()
            rows = self._broken[which] = wrap(self._paragraphs[which], self._width)
        inside = at - self._starts[which]
        return rows[inside] if inside < len(rows) else ()

    # -- measuring -------------------------------------------------------------------------

    def on_resize(self, event: events.Resize) -> None:
        if self.scrollable_content_region.width != self._width:
            self._break_anew(self.scroll_offset.y)
        else:
            self.measure()

    def _break_anew(self, top: int) -> None:
        self._width = self.scrollable_content_region.width
        self._starts = array("q")
        self._rows = 0
        self._broken.clear()
        self._wants_end = False
        if self._width:
            self._measure_to(top + 2 * max(1, self.size.height))
        self.measure()
        self.go_to(top)
        self.refresh()
        self._go_on()

    def _measure_to(self, rows: int | None) -> None:
        """Until so many rows are known; without a number, for one slice of time."""
        width, paragraphs, starts = self._width, self._paragraphs, self._starts
        deadline = time.monotonic() + _SLICE_SEC
        total = self._rows
        for at in range(len(starts), len(paragraphs)):
            starts.append(total)
            total += height(paragraphs[at], width)
            if rows is not None:
                if total >= rows:
                    break
            elif time.monotonic() > deadline:
                break
        self._rows = total

    def _go_on(self) -> None:
        if self._timer is None and self._width and not self.is_measured:
            self._timer = soon(self, _PAUSE_SEC, self._measured)

    def _measured(self) -> None:
        self._timer = None
        self._measure_to(None)
        self.measure()
        if self._wants_end:
            self.go_to(self._rows)
        self._go_on()

    def action_last(self) -> None:
        self._wants_end = not self.is_measured
        super().action_last()

    def action_go(self, rows: int) -> None:
        self._wants_end = False
        super().action_go(rows)

    def action_first(self) -> None:
        self._wants_end = False
        super().action_first()
