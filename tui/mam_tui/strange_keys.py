"""A key that means nothing where it was pressed gets an answer: what it means, and where."""

from __future__ import annotations

from typing import Any

from textual import events
from textual.screen import ModalScreen, Screen

from mam_tui.actions import ACTIONS, Place, key_of
from mam_tui.desk import Desk
from mam_tui.keymap import FIXED
from mam_tui.widgets.key_bar import key_name


def what_of(event: events.Key, screen: Screen[Any], desk: Desk) -> str | None:
    """A sentence for a key that nothing here listens to; None for one that something does."""
    if event.key in FIXED:
        return None  # it moves where something can be moved
    meanings = _meanings(event.key, desk)
    is_asked = meanings or event.is_printable  # and no key that a terminal sends by itself
    if not is_asked or isinstance(screen, ModalScreen) or event.key in screen.active_bindings:
        return None
    name = key_name(event.key)
    keys = key_name(key_of(ACTIONS["help"], desk))
    if not meanings:
        return f"{name} means nothing here: {keys} shows the keys that do"
    return f"{name} means nothing here: {', '.join(meanings)}"


def _meanings(key: str, desk: Desk) -> list[str]:
    """What it does elsewhere, and where that is."""
    return [
        f"{action.words} ({_where(action.place)})"
        for action in ACTIONS.values()
        if key in key_of(action, desk).split(",")
    ]


def _where(place: Place) -> str:
    return "in the past" if place is Place.PAST else str(place)
