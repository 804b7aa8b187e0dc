"""A box to be ticked."""

from __future__ import annotations

from textual.widgets import Checkbox


class Tick(Checkbox):
    """One whose mark is there or is not: Textual's own differ by colour alone."""

    BUTTON_LEFT = BUTTON_RIGHT = ""

    @property
    def BUTTON_INNER(self) -> str:  # type: ignore[override]  # a constant there, ours looks
        return "[x]" if self.value else "[ ]"
