"""The form of new sessions: which agent, for whose jobs, how many, and where.

The command that does the same stands below it, and grows as the boxes are filled.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.suggester import SuggestFromList
from textual.widgets import Checkbox, Input, Label

from mam_core.operations.agents import Choice
from mam_core.safe_text import one_line
from mam_tui.screens.dialog import Dialog
from mam_tui.screens.forms.boxes import BOXES
from mam_tui.screens.forms.tick import Tick
from mam_tui.widgets.typed_line import TypedLine

_PREFIX = "tmux:"


class Wish(NamedTuple):
    """What the boxes hold."""

    agent: str = ""
    label: str = ""
    how_many: str = "1"
    workdir: str = ""
    worktree: bool = False

    def trouble(self, agents: Sequence[Choice]) -> str:
        """What can be known to be wrong without a look at the disk; empty: nothing."""
        if not self.agent or not self.label:
            return "still missing: " + ("agent" if not self.agent else "label")
        known = {choice.name: choice for choice in agents}
        if self.agent not in known:
            return f"there is no agent {self.agent}: {', '.join(known)}"
        if known[self.agent].trouble:
            return known[self.agent].trouble
        if not self.how_many.isdecimal() or not int(self.how_many):
            return f"count: {self.how_many!r} is no number of sessions"
        return ""

    def words(self) -> list[str]:
        """What one would type after ``mam``."""
        words = ["spawn", "--agent-session", self.label, "--agent", self.agent]
        if self.how_many != "1":
            words += ["--count", self.how_many]
        if self.workdir:
            words += ["--workdir", self.workdir]
        return [*words, "--worktree"] if self.worktree else words


class SpawnForm(Dialog[Wish | None]):
    """Answers what is wanted, or None."""

    DEFAULT_CSS = """
    SpawnForm { align: center middle; }
    SpawnForm > Vertical {
        width: 100%; max-width: 90; height: auto; max-height: 100%; padding: 0 1;
        background: $surface; border: round $primary;
    }
    SpawnForm .title { text-style: bold; color: $text-primary; margin-bottom: 1; }
    SpawnForm .field { height: auto; }
    SpawnForm .field Label { width: 10; color: $text-muted; }
    SpawnForm Input { border: none; height: 1; padding: 0; width: 1fr; background: $panel; }
    SpawnForm Input:focus { border: none; background: $primary 30%; }
    SpawnForm Checkbox { border: none; padding: 0; background: $surface; height: 1; }
    SpawnForm Checkbox:focus { border: none; }
    SpawnForm Checkbox > .toggle--button { color: $foreground; background: $panel; }
    SpawnForm Checkbox.-on > .toggle--button { color: $foreground; background: $panel; }
    SpawnForm .hint { color: $text-muted; width: 1fr; }
    SpawnForm .command { color: $text-muted; width: 1fr; margin-top: 1; }
    SpawnForm .trouble { color: $text-error; text-style: bold; height: auto; width: 1fr; }
    SpawnForm .keys { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *BOXES,
        # Not with priority: it would overtake letters that their box has not taken yet.
        Binding("ctrl+s", "start", "start"),
        Binding("escape", "leave", "leave"),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(
        self,
        agents: Sequence[Choice],
        wish: Wish,
        *,
        labels: Sequence[str] = (),
        trouble: str = "",
    ) -> None:
        """`labels` are those of jobs that wait; `trouble` is why it did not work the last time."""
        super().__init__()
        self._agents = agents
        self._wish = wish
        self._labels = labels
        self._trouble = trouble

    def compose(self) -> ComposeResult:
        wish = self._wish
        names = [choice.name for choice in self._agents]
        with Vertical():
            yield Label("Start agent sessions", classes="title", markup=False)
            yield self._box("agent", wish.agent, "the profile that runs the jobs", names)
            yield Label(self._who(), classes="hint", markup=False)
            yield self._box("label", wish.label, "tmux:NAME, whose jobs are run", self._labels)
            yield self._box("count", wish.how_many, "more than one is a pool: NAME-1, NAME-2 …")
            yield self._box("workdir", wish.workdir, "the folder it works in (default: here)")
            with Horizontal(classes="field"):
                yield Label("worktree", markup=False)
                yield Tick("a git worktree and a branch of its own for each", wish.worktree)
            yield Label("", classes="command", markup=False)
            yield Label(one_line(self._trouble), classes="trouble", markup=False)
            yield Label("^s start   tab next   esc leave", classes="keys", markup=False)

    def _box(self, name: str, text: str, hint: str, known: Sequence[str] = ()) -> Horizontal:
        suggester = SuggestFromList(known, case_sensitive=False) if known else None
        line = TypedLine(text, placeholder=hint, id=name, suggester=suggester)
        return Horizontal(Label(name, markup=False), line, classes="field")

    def _who(self) -> str:
        here = [choice.name for choice in self._agents if choice.is_here]
        return one_line(f"here: {', '.join(here) or 'none'}")

    def opened(self) -> None:
        self.query_one("#agent", Input).focus()
        self._told()

    def wish(self) -> Wish:
        texts = {line.id or "": line.value.strip() for line in self.query(Input)}
        label = texts["label"]
        if label and not label.startswith(_PREFIX):
            label = _PREFIX + label
        is_own = self.query_one(Checkbox).value
        return Wish(texts["agent"], label, texts["count"] or "1", texts["workdir"], is_own)

    @on(Input.Changed)
    @on(Checkbox.Changed)
    def _told(self) -> None:
        wish = self.wish()
        words = wish._replace(agent=wish.agent or "AGENT", label=wish.label or "tmux:NAME").words()
        self.query_one(".command", Label).update(one_line(f"$ mam {shlex.join(words)}"))

    @on(Input.Submitted)
    def _next(self, event: Input.Submitted) -> None:
        self.focus_next()

    def action_start(self) -> None:
        wish = self.wish()
        if trouble := wish.trouble(self._agents):
            self.query_one(".trouble", Label).update(one_line(trouble))
            return
        self.dismiss(wish)

    def action_leave(self) -> None:
        self.dismiss(None)
