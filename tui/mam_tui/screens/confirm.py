"""The question before something is destroyed: what, how many, which; and the way out is default."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Label

from mam_core.safe_text import clip, one_line
from mam_tui.screens.dialog import Dialog

_SAMPLE = 5
_WIDE = 70


class Confirm(Dialog[bool]):
    """True only by `y`, or by going to the button; never by the key that asked."""

    DEFAULT_CSS = """
    Confirm { align: center middle; }
    Confirm > Vertical {
        width: auto; max-width: 80; min-width: 40; height: auto; padding: 1 2;
        background: $surface; border: round $warning;
    }
    Confirm .question { text-style: bold; }
    Confirm .sample { color: $text-muted; }
    Confirm Horizontal { height: auto; width: auto; margin-top: 1; }
    Confirm Button { margin-right: 2; }
    """
    AUTO_FOCUS = "#no"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,q", "answer(False)", "no"),
        Binding("left,right,h,l", "app.focus_next", show=False),
    ]

    def __init__(self, question: str, sample: Sequence[str], yes: str) -> None:
        super().__init__()
        self._question = question
        self._sample = sample
        self._yes = yes
        self.asked_at = math.inf  #: a key from before is no answer, and the console drops it

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(one_line(self._question), classes="question", markup=False)
            for line in self._sample[:_SAMPLE]:
                yield Label(clip(one_line(line), _WIDE), classes="sample", markup=False)
            if (more := len(self._sample) - _SAMPLE) > 0:
                yield Label(f"… and {more} more", classes="sample", markup=False)
            with Horizontal():
                yield Button("n  keep", id="no")
                yield Button(f"y  {self._yes}", id="yes", variant="error")

    def opened(self) -> None:
        self.asked_at = time.monotonic()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)
