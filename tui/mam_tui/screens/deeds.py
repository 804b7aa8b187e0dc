"""``@``: what was done from this console, with the command line that would do the same."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from mam_core.safe_text import one_line
from mam_tui.desk import Deed
from mam_tui.screens.dialog import Dialog
from mam_tui.widgets.reading import Reading

_SENTENCES = 20


class DeedsScreen(Dialog[None]):
    """The newest last, as in a shell's history."""

    DEFAULT_CSS = """
    DeedsScreen { align: center middle; }
    DeedsScreen > Reading {
        width: 90%; height: 80%; padding: 1 2; background: $surface; border: round $primary;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "leave", "leave"),
        Binding("at", "leave", "leave", id="log"),
    ]

    def __init__(self, deeds: Sequence[Deed]) -> None:
        super().__init__()
        self._deeds = deeds

    def compose(self) -> ComposeResult:
        with Reading():
            yield Static(self._text())

    def opened(self) -> None:
        self.query_one(Reading).scroll_end(animate=False)

    def _text(self) -> Text:
        text = Text()
        if not self._deeds:
            text.append("nothing was done from here yet", "dim")
        for deed in self._deeds:
            at = time.strftime("%H:%M:%S", time.localtime(deed.at))
            text.append(f"{at} ", "dim")
            text.append("done  " if deed.ok else "FAILED  ", "" if deed.ok else "bold")
            text.append(f"$ {one_line(deed.command)}\n", "bold")
            for sentence in deed.sentences[:_SENTENCES]:
                text.append(f"         {one_line(sentence)}\n")
            if (more := len(deed.sentences) - _SENTENCES) > 0:
                text.append(f"         … and {more} more\n", "dim")
        return text

    def action_leave(self) -> None:
        self.dismiss()
