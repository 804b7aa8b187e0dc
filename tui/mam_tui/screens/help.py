"""``?``: the keys that are valid here, made from the bindings themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from mam_tui.actions import ACTIONS, UNBOUND, Place
from mam_tui.filters import FIELDS
from mam_tui.views import VIEWS
from mam_tui.widgets.key_bar import key_name
from mam_tui.widgets.reading import Reading

#: What every scrolling widget of Textual brings along, and nobody looks for.
_NOT_OURS = ("scroll_", "page_", "screen.", "app.focus_", "command_palette", "help_quit")


class Part(StrEnum):
    """Of the page, in this order."""

    PAST = "In the past"
    HERE = "Here"
    MOVING = "Moving about"
    EVERYWHERE = "Everywhere"
    VIEWS = "Views"


class KeyHelp(NamedTuple):
    """One line: the keys, what they do, and why they do not now."""

    keys: str
    words: str
    why_not: str = ""
    part: Part = Part.HERE


class HelpScreen(ModalScreen[None]):
    """Any key that leaves, leaves."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > Reading {
        width: 78; max-width: 100%; height: auto; max-height: 90%; padding: 1 2;
        background: $surface; border: round $primary;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "leave", "leave"),
        Binding("question_mark", "leave", "leave", id="help"),
    ]

    def __init__(self, lines: Sequence[KeyHelp]) -> None:
        super().__init__()
        self._lines = lines

    def compose(self) -> ComposeResult:
        with Reading():
            yield Static(Group(*self._page()))

    def _page(self) -> Iterator[Text | Table]:
        """A table for each part, so that long words go on where they began."""
        yield Text("Keys that are valid here\n", "bold")
        wide = max((len(line.keys) for line in self._lines), default=0)
        for part in Part:
            lines = [line for line in self._lines if line.part is part]
            if lines:
                yield Text(f"{part}", "bold underline")
                yield _table(lines, wide)
        yield Text("Filters", "bold underline")
        yield Text(
            '  text  -text  "two words"  /pattern/  a,b means either\n'
            f"  {':  '.join(FIELDS)}:\n"
            "  numbers take < and >: attempt:>1  age:<2h  cost:>0.5\n"
        )
        yield Text("Commands", "bold underline")
        yield Text(
            f"  : and the name of an action or a view, or its beginning\n  {_short_names()}\n"
        )
        yield Text("esc leaves this page", "dim")

    def action_leave(self) -> None:
        self.dismiss()


def _table(lines: Sequence[KeyHelp], wide: int) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=wide + 2)
    table.add_column()
    for line in lines:
        words = Text(line.words, "dim" if line.why_not else "")
        if line.why_not:
            words.append(f"  ({line.why_not})", "dim italic")
        table.add_row(Text(f"  {line.keys}", "bold"), words)
    table.add_row("", "")
    return table


def _short_names() -> str:
    """What else the views are called."""
    return "  ".join(
        f"{kind.name}: {' '.join(kind.aliases)}" for kind in VIEWS.values() if kind.aliases
    )


def keys_of(screen: Screen[Any], lacks: Callable[[str], str | None]) -> list[KeyHelp]:
    """Every key that does something on this screen; several for one thing stand on one line."""
    together: dict[str, tuple[list[str], Binding]] = {}
    for active in screen.active_bindings.values():
        binding = active.binding
        if binding.key == UNBOUND:
            continue
        if binding.description and not binding.action.startswith(_NOT_OURS):
            keys, _ = together.setdefault(binding.action, ([], binding))
            keys.append(key_name(binding.key))
    lines = []
    order = {name: at for at, name in enumerate(ACTIONS)}
    found = together.values()
    ours_first = sorted(found, key=lambda one: order.get(one[1].id or "", len(order)))
    for keys, binding in ours_first:
        reason = lacks(binding.id) if binding.id and binding.id in ACTIONS else None
        part = _part_of(binding)
        lines.append(KeyHelp(" ".join(keys), binding.description, reason or "", part))
    return lines


def _part_of(binding: Binding) -> Part:
    name = binding.id or ""
    if name.startswith("view-"):
        return Part.VIEWS
    if name not in ACTIONS:
        return Part.EVERYWHERE if binding.action == "quit" else Part.MOVING
    place = ACTIONS[name].place
    return {Place.EVERYWHERE: Part.EVERYWHERE, Place.PAST: Part.PAST}.get(place, Part.HERE)
