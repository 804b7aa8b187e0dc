"""The ``:`` line at the bottom: completes as it is typed, remembers what was entered."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Label

from mam_core.safe_text import one_line
from mam_tui.commands import BadCommand, Command, History, completions, parse
from mam_tui.widgets.typed_line import TypedLine


class _Completing(Suggester):
    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        return next(iter(completions(value)), None) if value else None


class CommandLine(Vertical):
    """Hidden until it is asked for."""

    DEFAULT_CSS = """
    CommandLine { height: auto; display: none; background: $surface; }
    CommandLine Horizontal { height: 1; }
    CommandLine.-open { display: block; }
    CommandLine Label { padding: 0 1; }
    CommandLine .trouble { color: $text-error; display: none; width: 1fr; height: auto; }
    CommandLine .trouble.-on { display: block; }
    CommandLine Input { border: none; height: 1; padding: 0; width: 1fr; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "older", "older", show=False),
        Binding("down", "newer", "newer", show=False),
        Binding("tab", "complete", "complete", show=False, priority=True),
        Binding("escape", "leave", "leave", show=False),
    ]

    class Entered(Message):
        """The operator asked for something."""

        def __init__(self, command: Command) -> None:
            super().__init__()
            self.command = command

    class Left(Message):
        """The line is put away."""

    def __init__(self) -> None:
        super().__init__()
        self._history = History()

    def compose(self) -> ComposeResult:
        yield Label("", classes="trouble", markup=False)
        with Horizontal():
            yield Label(":")
            yield TypedLine(suggester=_Completing(), select_on_focus=False, compact=True)

    def open(self) -> None:
        self.add_class("-open")
        self._say("")
        line = self.query_one(Input)
        line.value = ""
        self.screen.set_focus(line)  # at once: the next letter is for this line

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._say("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            command = parse(event.value)
        except BadCommand as problem:
            self._say(problem.message)
            return
        self._history.add(event.value.strip())
        self.action_leave()
        if command is not None:
            self.post_message(self.Entered(command))

    def action_older(self) -> None:
        self._fill(self._history.older())

    def action_newer(self) -> None:
        self._fill(self._history.newer())

    def action_complete(self) -> None:
        self._fill(next(iter(completions(self.query_one(Input).value)), None))

    def action_leave(self) -> None:
        self.remove_class("-open")
        self.post_message(self.Left())

    def _fill(self, text: str | None) -> None:
        if text is not None:
            line = self.query_one(Input)
            line.value = text
            line.cursor_position = len(text)

    def _say(self, sentence: str) -> None:
        """In a line of its own: what was typed stays in sight, however narrow it is here."""
        trouble = self.query_one(".trouble", Label)
        trouble.update(one_line(sentence))
        trouble.set_class(bool(sentence), "-on")
