"""Two attempts beside each other: how they went, what happened, what they printed and left."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static

from mam_core.operations.compare import Comparison, compare
from mam_core.registry import Registry
from mam_core.safe_text import clip, one_line
from mam_tui.actions import ACTIONS
from mam_tui.desk import Desk
from mam_tui.history.comparing import PARTS, Pair, compared
from mam_tui.widgets.detail.asking import Answer, Asking
from mam_tui.widgets.detail.tab import Setting
from mam_tui.widgets.detail.tab_bar import TabBar
from mam_tui.widgets.key_bar import KeyBar
from mam_tui.widgets.status_bar import StatusBar
from mam_tui.widgets.two_sides import WIDE, TwoSides

if TYPE_CHECKING:
    from mam_tui.app import Console

_KEYS = (
    ("question_mark", "keys"),
    ("escape", "back"),
    ("tab", "next part"),
    ("comma", "left: earlier"),
    ("full_stop", "left: later"),
    ("less_than_sign", "right: earlier"),
    ("greater_than_sign", "right: later"),
)
_NOTHING = {
    "outcome": "nothing is logged about either",
    "timeline": "nothing is logged about either",
    "output": "neither has printed anything",
    "files": "neither has changed a file",
}


class Tried(NamedTuple):
    """An attempt of a job that has so many."""

    job_id: str
    attempt: int
    attempts: int

    @property
    def words(self) -> str:
        return f"{self.job_id} attempt {self.attempt} of {self.attempts}"


class CompareScreen(Screen[None]):
    """Asked on a thread: git may take its time."""

    DEFAULT_CSS = """
    CompareScreen .sides { height: 1; background: $surface; text-style: bold; }
    CompareScreen .sides.-two { height: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "back", id="back"),
        Binding("tab,right_square_bracket", "part(1)", "next part", show=False),
        Binding("shift+tab,left_square_bracket", "part(-1)", "part before", show=False),
        Binding("comma", "try(0, -1)", "left: the attempt before", show=False),
        Binding("full_stop", "try(0, 1)", "left: the attempt after", show=False),
        Binding("less_than_sign", "try(1, -1)", "right: the attempt before", show=False),
        Binding("greater_than_sign", "try(1, 1)", "right: the attempt after", show=False),
        Binding(ACTIONS["help"].key, "help", "keys", id="help", show=False),
    ]

    class Answered(Message):
        """From the asking thread."""

        bubble = False

        def __init__(self, answer: Answer) -> None:
            super().__init__()
            self.answer = answer

    def __init__(self, desk: Desk, left: Tried, right: Tried, *, ascii_only: bool = False) -> None:
        super().__init__()
        self._sides = [left, right]
        self._ascii = ascii_only
        self._setting = Setting(desk.clock, ascii_only)
        self._asking = Asking(desk, self._deliver)
        self._parts: Mapping[str, list[Pair]] = {}
        self._open = PARTS[0]

    def compose(self) -> ComposeResult:
        yield StatusBar(ascii_only=self._ascii)
        yield TabBar(PARTS, self._open)
        yield Static(classes="sides", markup=False)
        yield TwoSides(ascii_only=self._ascii)
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(TwoSides).focus()
        self._ask()

    def on_unmount(self) -> None:
        self._asking.close()

    def on_resize(self) -> None:
        self.settle()

    @property
    def is_waiting(self) -> bool:
        return self._asking.is_waiting

    def settle(self) -> None:
        console = cast("Console", self.app)
        self.query_one(StatusBar).standing = console.standing()._replace(
            view="history > compare", filter="", marked=0, shown=0, total=0
        )
        self.query_one(KeyBar).show(_KEYS)
        is_wide = self.size.width >= WIDE
        heads = self.query_one(".sides", Static)
        heads.set_class(not is_wide, "-two")
        heads.update(self._heads(is_wide))

    def _heads(self, is_wide: bool) -> Text:
        signs = ("<", ">") if self._ascii else ("◂", "▸")
        names = [
            f"{sign} {one_line(side.words)}" for sign, side in zip(signs, self._sides, strict=True)
        ]
        if not is_wide:
            return Text("\n".join(names), no_wrap=True, overflow="ellipsis", end="")
        half = (self.size.width - 3) // 2
        left = clip(names[0], half)
        return Text(f"{left}{' ' * (half + 3 - len(left))}{names[1]}", no_wrap=True, end="")

    # -- asking --------------------------------------------------------------------------------

    def _ask(self) -> None:
        sides = [(side.job_id, side.attempt) for side in self._sides]
        setting = self._setting

        def ask(registry: Registry) -> Mapping[str, list[Pair]]:
            both: Comparison = compare(registry, sides[0], sides[1])
            return compared(both, setting)

        self._asking.give_up()
        self._asking.ask(ask)
        self._show({}, "reading …")
        self.settle()

    def _deliver(self, answer: Answer) -> None:
        """On the asking thread."""
        with suppress(RuntimeError):  # the console has just been left
            self.post_message(self.Answered(answer))

    def on_compare_screen_answered(self, event: Answered) -> None:
        event.stop()
        answer = event.answer
        is_left = not self.query(TwoSides)  # its parts go first
        if self._asking.takes(answer.ticket) and not is_left:
            self._show(answer.content or {}, answer.trouble)

    def _show(self, parts: Mapping[str, list[Pair]], why: str = "") -> None:
        self._parts = parts
        view = self.query_one(TwoSides)
        view.put(parts.get(self._open, []))
        view.say(why or _NOTHING[self._open])

    # -- what is asked -------------------------------------------------------------------------

    def action_part(self, by: int) -> None:
        self._switch(PARTS[(PARTS.index(self._open) + by) % len(PARTS)])

    def on_tab_bar_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        self._switch(event.name)

    def _switch(self, name: str) -> None:
        self._open = name
        self.query_one(TabBar).chosen = name
        self._show(self._parts, "reading …" if self.is_waiting else "")

    def action_try(self, which: int, by: int) -> None:
        side = self._sides[which]
        if 1 <= side.attempt + by <= side.attempts:
            self._sides[which] = side._replace(attempt=side.attempt + by)
            self._ask()

    def action_help(self) -> None:
        cast("Console", self.app).act("help")

    def action_leave(self) -> None:
        self.dismiss()
