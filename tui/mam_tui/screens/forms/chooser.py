"""One of a few names, on one line: left and right go through them, a letter jumps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from mam_core.safe_text import clip, one_line
from mam_tui.styles import ink


class Chooser(Widget, can_focus=True):
    """Always has one; the first is what it begins with."""

    DEFAULT_CSS = """
    Chooser { height: 1; width: 1fr; background: $panel; }
    Chooser:focus { background: $primary 30%; }
    Chooser > .chooser--hint { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"chooser--hint"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,space", "step(1)", "next", show=False),
        Binding("left", "step(-1)", "one before", show=False),
        Binding("home", "first", "first", show=False),
    ]

    at: reactive[int] = reactive(0)

    class Chosen(Message):
        """Another one."""

        def __init__(self, chooser: Chooser, name: str) -> None:
            super().__init__()
            self.chooser = chooser
            self.name = name

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._names = names

    @property
    def name_chosen(self) -> str:
        return self._names[self.at]

    def render(self) -> Text:
        text = Text(f"< {clip(one_line(self.name_chosen), 60)} >", no_wrap=True, end="")
        hint = f"  {self.at + 1} of {len(self._names)}: left, right, or its first letter"
        if self.has_focus and text.cell_len + len(hint) <= self.size.width:
            text.append(hint, ink(self, "chooser--hint"))
        return text

    def watch_at(self, before: int, now: int) -> None:
        if before != now:
            self.post_message(self.Chosen(self, self.name_chosen))

    def action_step(self, by: int) -> None:
        self.at = (self.at + by) % len(self._names)

    def action_first(self) -> None:
        self.at = 0

    def on_key(self, event: events.Key) -> None:
        """A letter goes to the next name that begins with it."""
        letter = (event.character or "").lower()
        if len(letter) != 1 or not letter.isalnum():
            return
        event.stop()
        ahead = [(self.at + step) % len(self._names) for step in range(1, len(self._names) + 1)]
        fits = (at for at in ahead if self._names[at].lower().startswith(letter))
        self.at = next(fits, self.at)
