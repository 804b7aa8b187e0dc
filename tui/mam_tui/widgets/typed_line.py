"""A line that is typed in, in which foreign text does no harm.

What is pasted, remembered or suggested may hold characters that a terminal obeys, and Textual
would send them as they are. Each is drawn as one stand-in, and stays what it is in the text.
"""

from __future__ import annotations

from typing import Any

from rich.highlighter import Highlighter
from rich.text import Text
from textual.widgets import Input

from mam_core.safe_text import MAX_MARKS, cell_width, safe

_STAND_IN = "?"


def drawn(text: str) -> str:
    """As long as `text`, so that the cursor stands where it seems to."""
    if safe(text, "\t") == text:
        return text
    shown, marks = [], 0
    for one in text:
        marks = 0 if cell_width(one) else marks + 1
        is_harmless = safe(one, "\t") == one and marks <= MAX_MARKS
        shown.append(one if is_harmless else _STAND_IN)
    return "".join(shown)


class _Harmless(Highlighter):
    """What may change the look of a line in Textual may change its characters, too."""

    def __init__(self, line: Input) -> None:
        self._line = line

    def highlight(self, text: Text) -> None:
        """Not from `text` itself: some control characters are already missing in it."""
        text.plain = drawn(self._line.value)


class TypedLine(Input):
    """Textual's own, but for what is drawn."""

    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        self.highlighter = _Harmless(self)
        self.cursor_blink = False
