"""The names of the tabs on one line; brackets, not only colour, say which one is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text
from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

_WIDE_GAP = 2


class Place(NamedTuple):
    """Where a name stands."""

    name: str
    at: int
    text: str


def laid_out(names: Sequence[str], chosen: str, width: int) -> list[Place]:
    """As many names as there is room for; the chosen one is among them."""
    places = _placed(names, names, chosen, _WIDE_GAP)
    if _end(places) > width:
        places = _placed(names, names, chosen, 1)
    shown = list(names)
    while len(shown) > 1 and _end(places) > width:
        # The end that is further from the chosen one goes.
        at = shown.index(chosen)
        shown.pop(0 if at > len(shown) - 1 - at else -1)
        places = _placed(shown, names, chosen, 1)
    if _end(places) > width:
        return [Place(chosen, 0, f"[{chosen}]")]
    return places


def _placed(shown: Sequence[str], names: Sequence[str], chosen: str, gap: int) -> list[Place]:
    """In a row; a mark at either end says that there are more."""
    entries = [(name, f"[{name}]" if name == chosen else name) for name in shown]
    if shown[0] != names[0]:
        entries.insert(0, ("", "<"))
    if shown[-1] != names[-1]:
        entries.append(("", ">"))
    places, at = [], 0
    for name, text in entries:
        places.append(Place(name, at, text))
        at += len(text) + gap
    return places


def _end(places: Sequence[Place]) -> int:
    return places[-1].at + len(places[-1].text)


class TabBar(Widget):
    """A click opens a tab."""

    DEFAULT_CSS = """
    TabBar { height: 1; background: $surface; color: $text-muted; }
    TabBar > .tab-bar--chosen { color: $text-primary; text-style: bold; }
    TabBar > .tab-bar--other { color: $text-muted; }
    """
    COMPONENT_CLASSES = {"tab-bar--chosen", "tab-bar--other"}

    chosen: reactive[str] = reactive("")

    class Chosen(Message):
        """A name was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, names: Sequence[str], chosen: str) -> None:
        super().__init__()
        self.names = tuple(names)
        self.set_reactive(TabBar.chosen, chosen)

    def render(self) -> Text:
        line = Text(no_wrap=True, end="")
        for place in laid_out(self.names, self.chosen, self.size.width):
            line.append(" " * (place.at - len(line.plain)))
            kind = "chosen" if place.name == self.chosen else "other"
            style = self.get_component_rich_style(f"tab-bar--{kind}")
            line.append(place.text, style)
        return line

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        for place in laid_out(self.names, self.chosen, self.size.width) if at else ():
            if at is not None and place.name and place.at <= at.x < place.at + len(place.text):
                self.post_message(self.Chosen(place.name))
