"""What went wrong, in a line that stays until somebody has read it."""

from __future__ import annotations

from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget


class Complaint(Widget):
    """Above the keys, on every screen; as high as its words need, within reason."""

    DEFAULT_CSS = """
    Complaint {
        height: auto; max-height: 4; padding: 0 1; background: $error 20%; color: $text-error;
    }
    Complaint:ansi { background: ansi_default; color: ansi_red; text-style: bold; }
    Complaint:nocolor { text-style: bold reverse; }
    """

    words: reactive[str] = reactive("", layout=True)

    def render(self) -> Text:
        return Text(self.words, end="")
