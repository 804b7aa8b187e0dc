"""The palette: everything that can be done where the operator is now."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import SystemCommand
from textual.command import Provider
from textual.screen import Screen

from mam_tui.actions import ACTIONS, key_of
from mam_tui.screens.view import View
from mam_tui.views import VIEWS
from mam_tui.widgets.key_bar import key_name

if TYPE_CHECKING:
    from mam_tui.app import Console


def palette(console: Console, screen: Screen[Any]) -> Iterable[SystemCommand]:
    """The actions of the screen that the palette was opened on, then the way to the views."""
    if isinstance(screen, View):
        for action in ACTIONS.values():
            if screen.knows(action):
                key = key_of(action, console.desk)
                in_words = f" ({key_name(key)})" if key else ""
                act = partial(screen.action_act, action.name)
                reason = screen.lacks(action.name)
                told = f":{action.name}" + (f"   not now: {reason}" if reason else "")
                yield SystemCommand(f"{action.words}{in_words}", told, act)
    else:
        picture = ACTIONS["screenshot"]
        yield SystemCommand(picture.words, f":{picture.name}", partial(console.act, picture.name))
    for view in VIEWS.values():
        go = partial(console.action_view, view.name)
        key = key_name(console.desk.keys.get(f"view-{view.name}", view.key))
        yield SystemCommand(f"view: {view.name} ({key})", view.words, go)
    yield SystemCommand("theme", "choose the colours: :theme NAME", console.action_change_theme)


def in_our_order() -> type[Provider]:
    """Brought along only when the palette is opened."""
    from mam_tui.palette_order import PaletteOrder

    return PaletteOrder
