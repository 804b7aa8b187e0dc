"""A few lines that must be read before something happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Label

from mam_core.safe_text import one_line


class Notice(ModalScreen[None]):
    """Any of its keys goes on."""

    DEFAULT_CSS = """
    Notice { align: center middle; }
    Notice > Vertical {
        width: auto; max-width: 80; height: auto; padding: 1 2;
        background: $surface; border: round $primary;
    }
    Notice .keys { color: $text-muted; margin-top: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,escape,space,q", "leave", "go on")]

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__()
        self._lines = lines

    def compose(self) -> ComposeResult:
        with Vertical():
            for line in self._lines:
                yield Label(one_line(line), markup=False)
            yield Label("enter goes on", classes="keys", markup=False)

    def action_leave(self) -> None:
        self.dismiss()
