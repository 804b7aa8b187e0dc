"""Boxes to write in, in which foreign text does no harm.

A job's prompt may hold escape sequences, and Textual would send them to the terminal as they
are. Here each such character is drawn as one stand-in, and stays what it is in the text. A
text that a box cannot hold as it is, since it is too long or has line ends of many kinds, is
only shown, by its beginning, and kept whole: an editor can change it.
"""

from __future__ import annotations

from rich.text import Text
from textual.suggester import Suggester
from textual.widgets import TextArea

from mam_tui.widgets.typed_line import TypedLine, drawn

#: Beyond these a key takes more than a tenth of a second (100,000 characters in one line: 0.2 s).
_MOST_CHARS = 100_000
_LONGEST_LINE = 10_000
_HEAD_CHARS = 2_000


class SafeLine(TypedLine):
    """One line; nothing in it is chosen beforehand, so that no letter replaces all of it."""

    def __init__(
        self, text: str, *, id: str, placeholder: str = "", suggester: Suggester | None = None
    ) -> None:
        super().__init__(text, placeholder, id=id, suggester=suggester, select_on_focus=False)


class SafeArea(TextArea):
    """Several lines; `whole` is what it holds, whether it can be edited here or not."""

    def __init__(self, text: str, *, id: str, placeholder: str = "") -> None:
        self.kept = None if _fits(text) else text  #: only shown
        super().__init__(
            text if self.kept is None else text[:_HEAD_CHARS],
            id=id,
            placeholder=placeholder,
            soft_wrap=True,
            read_only=self.kept is not None,
        )
        self.cursor_blink = False

    @property
    def whole(self) -> str:
        return self.text if self.kept is None else self.kept

    def put(self, text: str) -> None:
        """Another text."""
        self.kept = None if _fits(text) else text
        self.read_only = self.kept is not None
        self.text = text if self.kept is None else text[:_HEAD_CHARS]

    def on_text_area_changed(self) -> None:
        """Somebody may have pasted a book."""
        if self.kept is None and not _fits(self.text):
            self.put(self.text)

    def get_line(self, line_index: int) -> Text:
        return Text(drawn(self.document.get_line(line_index)), end="", no_wrap=True)


def _fits(text: str) -> bool:
    """A box breaks a text at every kind of line end, and joins it with one kind."""
    if len(text) > _MOST_CHARS:
        return False
    lines = text.splitlines()
    if len(text) > _LONGEST_LINE and max(map(len, lines)) > _LONGEST_LINE:
        return False
    return any(end.join(lines) in (text, text.removesuffix(end)) for end in ("\n", "\r\n"))
