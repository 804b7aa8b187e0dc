"""What an agent asks, in full, and the answers that it takes.

Nothing is chosen beforehand, and the key that opens this is none that answers: a
permission is never given by pressing one key twice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input, Label, Static

from mam_core.operations.asked import Asked
from mam_core.safe_text import clip, one_line, safe, safe_json
from mam_tui.screens.dialog import Dialog
from mam_tui.widgets.typed_line import TypedLine

#: Of one text: more than a person reads before a yes.
_MOST = 20_000
_KEPT = "\n\t"
_LINE = 400


class Reply(NamedTuple):
    """An answer, and the question that it is for."""

    text: str
    question: str


class AnswerForm(Dialog[Reply | None]):
    """Answers what was chosen, or None."""

    DEFAULT_CSS = """
    AnswerForm { align: center middle; }
    AnswerForm > Vertical {
        width: 100%; max-width: 110; height: auto; max-height: 100%; padding: 0 1;
        background: $surface; border: round $warning;
    }
    AnswerForm .title { text-style: bold; color: $text-warning; width: 1fr; }
    AnswerForm VerticalScroll { height: auto; max-height: 60vh; }
    AnswerForm Input { border: none; height: 1; padding: 0; background: $panel; margin-top: 1; }
    AnswerForm Input:focus { border: none; background: $primary 30%; }
    AnswerForm .choices { margin-top: 1; height: auto; display: none; }
    AnswerForm .choices.-some { display: block; }
    AnswerForm .keys { color: $text-muted; width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "reply('y')", "yes", show=False),
        Binding("n", "reply('n')", "no", show=False),
        *(Binding(str(n), f"choose({n})", show=False) for n in range(1, 10)),
        Binding("right,l", "other(1)", "next question", show=False),
        Binding("left,h", "other(-1)", "question before", show=False),
        Binding("t", "write", "write", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
        Binding("escape", "leave", "leave"),
    ]

    def __init__(self, job_id: str, questions: Sequence[Asked]) -> None:
        super().__init__()
        self._job_id = job_id
        self._questions = questions
        self._at = 0
        self.asked_at = math.inf  #: a key from before is no answer, and the console drops it

    @property
    def _asked(self) -> Asked:
        return self._questions[self._at]

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label("", classes="title", markup=False)
            with VerticalScroll():
                yield Static(classes="question", markup=False)
            yield Static(classes="choices", markup=False)
            yield TypedLine(placeholder="another answer, in your own words")
            yield Label("", classes="keys", markup=False)

    def opened(self) -> None:
        self.asked_at = time.monotonic()
        self.query_one(VerticalScroll).focus()
        self._show()

    def _show(self) -> None:
        many = len(self._questions)
        which = f", question {self._at + 1} of {many}" if many > 1 else ""
        title = one_line(f"Job {self._job_id} asks{which}")
        self.query_one(".title", Label).update(title)
        self.query_one(".question", Static).update(_told(self._asked))
        choices = self.query_one(".choices", Static)
        choices.update(self._offered())
        choices.set_class(bool(self._asked.choices), "-some")
        numbers = "" if not self._asked.choices else "1-9 choose   "
        others = "   ←/→ other questions" if many > 1 else ""
        keys = f"y yes   n no   {numbers}t write   esc leave{others}"
        self.query_one(".keys", Label).update(keys)

    def _offered(self) -> Text:
        text = Text()
        for at, choice in enumerate(self._asked.choices[:9], start=1):
            text.append(f" {at} ", "bold")
            text.append(f" {clip(one_line(choice.words), _LINE)}\n")
        text.rstrip()
        return text

    # -- what is answered ----------------------------------------------------------------------

    def action_reply(self, text: str) -> None:
        self.dismiss(Reply(text, self._asked.question.handle))

    def action_choose(self, number: int) -> None:
        choices = self._asked.choices
        if number <= len(choices):
            chosen = choices[number - 1]
            self.action_reply(chosen.number or chosen.words)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self.action_reply(event.value)

    def action_write(self) -> None:
        self.query_one(Input).focus()

    def action_other(self, step: int) -> None:
        self._at = (self._at + step) % len(self._questions)
        self._show()

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_leave(self) -> None:
        line = self.query_one(Input)
        if line.has_focus:
            self.query_one(VerticalScroll).focus()
        else:
            self.dismiss(None)


def _told(asked: Asked) -> Text:
    """The words, and all that the agent would do: nobody says yes to what he was not shown."""
    text = Text()
    words = asked.question.words
    if words or not asked.screen:
        text.append(safe(words[:_MOST], keep=_KEPT) or "it does not say what", "bold")
    for line in asked.screen:
        text.append(f"\n{clip(safe(line), _LINE)}" if text else clip(safe(line), _LINE))
    for name, value in (asked.question.given or {}).items():
        whole = value if isinstance(value, str) else safe_json(value, indent=2)
        text.append(f"\n{one_line(name)}: ", "dim")
        text.append(safe(whole[:_MOST], keep=_KEPT))
        if (more := len(whole) - _MOST) > 0:
            text.append(f"\n… and {more:,} characters that are not shown here", "bold reverse")
    return text
