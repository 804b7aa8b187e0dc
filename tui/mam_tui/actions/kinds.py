"""What an action is, and the places where actions are valid."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from mam_tui.desk import Desk


class Place(StrEnum):
    """Where an action is valid."""

    EVERYWHERE = "everywhere"
    BOARD = "board"
    SESSIONS = "sessions"
    FLEET = "fleet"
    ATTENTION = "attention"
    GANTT = "gantt"
    CHARTS = "charts"
    HISTORY = "history"
    GRAPH = "graph"
    NODES = "nodes"
    GROUPS = "groups"
    PAST = "past"  #: on any view, while it shows the past


#: Where an action without a key is bound: nobody can press it, but ``[keys]`` can give it one.
UNBOUND = "unbound"


class Action(NamedTuple):
    """One thing that can be done; `name` is also the word for ``:`` and for ``[keys]``."""

    name: str
    key: str
    words: str
    place: Place
    changes: bool = False  #: refused in read-only mode
    why_not: Callable[[Desk], str | None] = lambda desk: None
    weight: int = 0  #: the higher, the sooner it stands in the key bar
    aliases: tuple[str, ...] = ()
    only_now: bool = False  #: changes nothing, and means nothing in the past
