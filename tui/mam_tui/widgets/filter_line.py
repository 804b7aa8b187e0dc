"""The filter as it is typed: the board narrows with every key, and a mistake is said at once."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Label

from mam_core.safe_text import one_line
from mam_tui.filters import BadFilter, Filter, parse
from mam_tui.widgets.typed_line import TypedLine

_EXAMPLES = "text  state:waiting  agent:codex  -word  /pattern/"


class FilterLine(Vertical):
    """Hidden until it is asked for."""

    DEFAULT_CSS = """
    FilterLine { height: auto; display: none; background: $surface; }
    FilterLine Horizontal { height: 1; }
    FilterLine.-open { display: block; }
    FilterLine Label { padding: 0 1; }
    FilterLine .trouble { color: $text-error; display: none; width: 1fr; height: auto; }
    FilterLine .trouble.-on { display: block; }
    FilterLine Input { border: none; height: 1; padding: 0; width: 1fr; background: $surface; }
    """

    class Changed(Message):
        """There is another filter."""

        def __init__(self, chosen: Filter) -> None:
            super().__init__()
            self.chosen = chosen

    class Left(Message):
        """The operator is done with typing."""

    def compose(self) -> ComposeResult:
        yield Label("", classes="trouble", markup=False)
        with Horizontal():
            yield Label("/")
            yield TypedLine(placeholder=_EXAMPLES, select_on_focus=False, compact=True)

    def open(self, text: str) -> None:
        self.add_class("-open")
        line = self.query_one(Input)
        line.value = text
        line.cursor_position = len(text)
        self.screen.set_focus(line)  # at once: the next letter is for this line

    def close(self) -> None:
        self.remove_class("-open")
        self.post_message(self.Left())

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        try:
            chosen = parse(event.value)
        except BadFilter as problem:
            self._say(problem.message)
            return
        self._say("")
        self.post_message(self.Changed(chosen))

    def _say(self, sentence: str) -> None:
        """In a line of its own: what was typed stays in sight, however narrow it is here."""
        trouble = self.query_one(".trouble", Label)
        trouble.update(one_line(sentence))
        trouble.set_class(bool(sentence), "-on")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            parse(event.value)
        except BadFilter:
            return  # it is said above it, and another filter is in force
        self.close()

    def key_escape(self, event: events.Key) -> None:
        event.stop()  # the screen below would take it for the way back
        line = self.query_one(Input)
        if line.value:
            line.value = ""
        else:
            self.close()
