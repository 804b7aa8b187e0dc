"""``C``: which columns a table has, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from mam_tui.laying import Column
from mam_tui.screens.dialog import Dialog
from mam_tui.styles import ink
from mam_tui.widgets.reading import Reading

#: Lines before and after the columns.
_HEAD, _FOOT = 2, 3
_KEYS = """\
space shows or hides   J K moves it   enter keeps
a as the width allows   esc leaves it as it was"""


class Choice:
    """All columns in an order, some of them chosen; no choice at all leaves it to the width."""

    def __init__(self, known: Sequence[str], shown: Sequence[str], chosen: Sequence[str]) -> None:
        """`shown` are those that the table has now, by choice or by width."""
        self._known = tuple(known)
        self.is_automatic = not chosen
        wanted = [name for name in (chosen or shown) if name in known]
        self.names = [*wanted, *(name for name in known if name not in wanted)]
        if self.is_automatic:
            self.names = list(known)
        self.on = set(wanted)
        self.at = 0

    @property
    def chosen(self) -> tuple[str, ...]:
        """What the table is to have; none: what the width allows."""
        return () if self.is_automatic else tuple(name for name in self.names if name in self.on)

    def go(self, lines: int) -> None:
        self.at = max(0, min(len(self.names) - 1, self.at + lines))

    def toggle(self) -> None:
        self.is_automatic = False
        self.on ^= {self.names[self.at]}

    def move(self, by: int) -> None:
        """The column at the cursor, and the cursor with it."""
        to = self.at + by
        if 0 <= to < len(self.names):
            self.is_automatic = False
            self.names[self.at], self.names[to] = self.names[to], self.names[self.at]
            self.at = to

    def reset(self) -> None:
        self.is_automatic = True
        self.names = list(self._known)


class _Page(Reading):
    """The keys that scroll elsewhere move the cursor here; a click shows or hides."""

    def __init__(self, dialog: ColumnsDialog) -> None:
        super().__init__()
        self._dialog = dialog

    def action_go(self, lines: int) -> None:
        self._dialog.go(lines)

    def action_first(self) -> None:
        self._dialog.go(-self._dialog.choice.at)

    def action_last(self) -> None:
        self._dialog.go(len(self._dialog.choice.names))

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        line = -1 if at is None else at.y + self.scroll_offset.y - _HEAD
        if 0 <= line < len(self._dialog.choice.names):
            self._dialog.go(line - self._dialog.choice.at)
            self._dialog.action_switch()

    def keep_in_sight(self, line: int) -> None:
        """A line of the page; with the first column the heading, with the last one the keys."""
        top, height = self.scroll_offset.y, max(1, self.scrollable_content_region.height)
        if line - _HEAD < top:
            self.scroll_to(y=line - _HEAD, animate=False)
        elif line + _FOOT >= top + height:
            self.scroll_to(y=line + _FOOT + 1 - height, animate=False)


class ColumnsDialog(Dialog[tuple[str, ...]]):
    """Answers the chosen names, none for what the width allows; None when it is left."""

    DEFAULT_CSS = """
    ColumnsDialog { align: center middle; }
    ColumnsDialog > Reading {
        width: 60; max-width: 100%; height: auto; max-height: 100%; padding: 0 2;
        background: $surface; border: round $primary;
    }
    ColumnsDialog > .columns--on { color: $text-success; text-style: bold; }
    ColumnsDialog > .columns--off { color: $text-muted; }
    ColumnsDialog > .columns--cursor { text-style: reverse; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"columns--on", "columns--off", "columns--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "switch", "show or hide"),
        Binding("J,alt+down", "move(1)", "move down"),
        Binding("K,alt+up", "move(-1)", "move up"),
        Binding("a", "reset", "as the width allows"),
        Binding("enter", "keep", "keep"),
        Binding("escape,q", "leave", "leave"),
    ]

    def __init__(
        self, columns: Mapping[str, Column[Any]], shown: Sequence[str], chosen: Sequence[str]
    ) -> None:
        super().__init__()
        self._columns = columns
        self.choice = Choice(tuple(columns), shown, chosen)

    def compose(self) -> ComposeResult:
        with _Page(self):
            yield Static(markup=False)

    def opened(self) -> None:
        self.query_one(_Page).focus()
        self.draw()

    def draw(self) -> None:
        choice = self.choice
        text = Text().append("Columns", "bold")
        how = "as the width allows" if choice.is_automatic else "your own choice"
        text.append(f"  {how}\n\n")
        wide = max(map(len, self._columns))
        for line, name in enumerate(choice.names):
            is_on = name in choice.on
            style = ink(self, f"columns--{'on' if is_on else 'off'}")
            if line == choice.at:
                style += self.get_component_rich_style("columns--cursor", partial=True)
            mark = "[x]" if is_on else "[ ]"
            text.append(f" {mark} {name:<{wide}}  {self._columns[name].heading:<10} ", style)
            text.append("\n")
        text.append(f"\n{_KEYS}", "dim")
        self.query_one(Static).update(text)
        self.query_one(_Page).keep_in_sight(_HEAD + choice.at)

    def go(self, lines: int) -> None:
        self.choice.go(lines)
        self.draw()

    def action_switch(self) -> None:
        self.choice.toggle()
        self.draw()

    def action_move(self, by: int) -> None:
        self.choice.move(by)
        self.draw()

    def action_reset(self) -> None:
        self.choice.reset()
        self.draw()

    def action_keep(self) -> None:
        self.dismiss(self.choice.chosen)

    def action_leave(self) -> None:
        self.dismiss(None)
