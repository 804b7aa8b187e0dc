"""What lies over a view until it is answered.

An operator whose esc is faster than we are leaves it before it stands; its parts are gone
by then, and whoever asked for them would take the console along.
"""

from __future__ import annotations

from typing import Generic

from textual.screen import ModalScreen, ScreenResultType


class Dialog(ModalScreen[ScreenResultType], Generic[ScreenResultType]):
    """`opened` is called when it stands, and never for one that was left before."""

    def on_mount(self) -> None:
        if self.is_current:
            self.opened()

    def opened(self) -> None:
        """Give the focus away, and fill what is empty."""
