"""A page to be read: it scrolls by the keys that everything long is moved by."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from mam_tui.widgets.moving import MOVING


class Reading(VerticalScroll):
    """Around what is read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVING,
        Binding("home,g", "first", "first line", show=False),
        Binding("end,G", "last", "last line", show=False),
    ]

    def action_go(self, lines: int) -> None:
        self.scroll_relative(y=lines, animate=False)

    def action_page(self, pages: float) -> None:
        self.action_go(int(pages * max(1, self.size.height - 1)))

    def action_first(self) -> None:
        self.scroll_home(animate=False)

    def action_last(self) -> None:
        self.scroll_end(animate=False)
