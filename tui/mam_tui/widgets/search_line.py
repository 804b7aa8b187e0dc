"""Words that are looked for while they are typed: a short pause, and the question is asked."""

from __future__ import annotations

from asyncio import TimerHandle
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Label

from mam_tui.soon import soon
from mam_tui.widgets.typed_line import TypedLine

#: Whoever types on is not answered in between.
_PAUSE_SEC = 0.15


class SearchLine(Horizontal):
    """Hidden until it is asked for."""

    DEFAULT_CSS = """
    SearchLine { height: 1; display: none; background: $surface; }
    SearchLine.-open { display: block; }
    SearchLine Label { padding: 0 1; }
    SearchLine Input { border: none; height: 1; padding: 0; width: 1fr; background: $surface; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", show=False)]

    class Changed(Message):
        """Other words are looked for."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """The operator is done with typing."""

    def __init__(self, example: str) -> None:
        super().__init__()
        self._example = example
        self._due: TimerHandle | None = None

    def compose(self) -> ComposeResult:
        yield Label("/")
        yield TypedLine(placeholder=self._example, select_on_focus=False, compact=True)

    def open(self, text: str) -> None:
        self.add_class("-open")
        line = self.query_one(Input)
        with self.prevent(Input.Changed):
            line.value = text
        line.cursor_position = len(text)
        self.screen.set_focus(line)  # at once: the next letter is for this line

    def close(self) -> None:
        self.remove_class("-open")
        self.post_message(self.Left())

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._forget()
        self._due = soon(self, _PAUSE_SEC, self._ask)

    def _forget(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _ask(self) -> None:
        self._forget()
        self.post_message(self.Changed(self.query_one(Input).value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._due is not None:
            self._ask()
        self.close()

    def action_leave(self) -> None:
        """What was typed goes first, and at once: the next key may lead to another list."""
        line = self.query_one(Input)
        if line.value:
            with self.prevent(Input.Changed):
                line.value = ""
            self._ask()
        else:
            self.close()
