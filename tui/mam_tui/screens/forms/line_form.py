"""One line, asked for: a file's name, for example."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Label

from mam_core.safe_text import one_line
from mam_tui.screens.dialog import Dialog
from mam_tui.widgets.typed_line import TypedLine


class LineForm(Dialog[str | None]):
    """Answers the line, or None."""

    DEFAULT_CSS = """
    LineForm { align: center bottom; }
    LineForm > Vertical {
        width: 100%; max-width: 110; height: auto; padding: 0 1;
        background: $surface; border: round $primary;
    }
    LineForm .title { text-style: bold; color: $text-primary; }
    LineForm Input { border: none; height: 1; padding: 0; background: $panel; }
    LineForm Input:focus { border: none; }
    LineForm .keys { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", priority=True)]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(one_line(self._title), classes="title", markup=False)
            yield TypedLine(self._text, select_on_focus=False)
            yield Label("enter go on   esc leave", classes="keys", markup=False)

    def opened(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip() or None)

    def action_leave(self) -> None:
        self.dismiss(None)
