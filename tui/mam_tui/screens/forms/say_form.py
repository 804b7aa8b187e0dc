"""What an operator says to an agent at work: a few lines, sent by one key."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Label, TextArea

from mam_core.safe_text import clip, one_line
from mam_tui.screens.dialog import Dialog

_WIDE = 100


class SayForm(Dialog[str | None]):
    """Answers the text, or None. Enter sends, as it does where one talks to people."""

    DEFAULT_CSS = """
    SayForm { align: center bottom; }
    SayForm > Vertical {
        width: 100%; max-width: 110; height: auto; padding: 0 1;
        background: $surface; border: round $primary;
    }
    SayForm .title { text-style: bold; color: $text-primary; }
    SayForm TextArea { height: 6; border: none; background: $panel; padding: 0; }
    SayForm TextArea:focus { border: none; }
    SayForm .keys { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,ctrl+s", "send", "send", priority=True),
        Binding("ctrl+j", "line", "new line", priority=True),
        Binding("escape", "leave", "leave", priority=True),
    ]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(clip(one_line(self._title), _WIDE), classes="title", markup=False)
            text = TextArea(soft_wrap=True)
            text.cursor_blink = False
            yield text
            yield Label("enter send   ^j new line   esc leave", classes="keys", markup=False)

    def opened(self) -> None:
        self.query_one(TextArea).focus()

    def action_send(self) -> None:
        """After the letters that were typed before: this key has priority."""
        self.query_one(TextArea).call_later(self._send)

    def _send(self) -> None:
        text = self.query_one(TextArea).text
        if text.strip():
            self.dismiss(text)

    def action_line(self) -> None:
        self.query_one(TextArea).insert("\n")

    def action_leave(self) -> None:
        self.dismiss(None)
