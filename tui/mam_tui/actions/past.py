"""What can be done while the past is looked at, on whichever view: only to go about in it."""

from __future__ import annotations

from functools import partial

from mam_tui.actions.kinds import Action, Place
from mam_tui.desk import Desk


def _needs_the_past(desk: Desk) -> str | None:
    return None if desk.past is not None else "only in the past; :at 14:05 goes there"


_Past = partial(Action, place=Place.PAST, why_not=_needs_the_past)

PAST: tuple[Action, ...] = (
    _Past("now", "escape", "back to now", weight=130),
    _Past("earlier", "left,h", "one change back", weight=129),
    _Past("later", "right,l", "one change on", weight=128),
    _Past("play", "space", "play, stop", weight=127),
    _Past("faster", "greater_than_sign,full_stop", "faster", weight=126),
    _Past("slower", "less_than_sign,comma", "slower", weight=125),
    _Past("back-10s", "shift+left,H", "10 seconds back"),
    _Past("on-10s", "shift+right,L", "10 seconds on"),
    _Past("back-1m", "ctrl+left", "a minute back"),
    _Past("on-1m", "ctrl+right", "a minute on"),
    _Past("back-10m", "ctrl+shift+left,alt+left", "ten minutes back"),
    _Past("on-10m", "ctrl+shift+right,alt+right", "ten minutes on"),
    _Past("first-moment", "home", "the first moment"),
    _Past("last-moment", "end", "the last moment"),
)
