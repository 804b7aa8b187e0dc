"""The numbered views, as data, and the way from one to another.

The board is always there and lies below the others, so that leaving a view is
leaving a screen. A view that was left is kept as it was: its order, its cursor and
its place are found again when the operator comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from textual.screen import ModalScreen

from mam_tui.desk import THE_PAST
from mam_tui.screens.view import View

if TYPE_CHECKING:
    from mam_tui.app import Console

BOARD = "board"
#: The board, and what Textual has below it.
_OVER_THE_BOARD = 2


class ViewKind(NamedTuple):
    """One view; `make` brings its module with it, so that none costs the first frame anything."""

    name: str
    key: str
    words: str
    make: Callable[[Console], View]
    shows_past: bool = False  #: it goes by `desk.board`, `desk.now` and `View.travelled`
    aliases: tuple[str, ...] = ()  #: further names for the ``:`` line


def _board(console: Console) -> View:
    return console.board


def _sessions(console: Console) -> View:
    from mam_tui.screens.sessions import SessionsScreen

    return SessionsScreen(
        console.desk, console.talk, console.session_acts, ascii_only=console.ascii_only
    )


def _attention(console: Console) -> View:
    from mam_tui.screens.attention import AttentionScreen

    return AttentionScreen(console.desk, ascii_only=console.ascii_only)


def _fleet(console: Console) -> View:
    from mam_tui.screens.fleet import FleetScreen

    return FleetScreen(
        console.desk, console.talk, console.session_acts, ascii_only=console.ascii_only
    )


def _history(console: Console) -> View:
    from mam_tui.screens.history import HistoryScreen

    return HistoryScreen(console.desk, ascii_only=console.ascii_only)


def _gantt(console: Console) -> View:
    from mam_tui.screens.gantt import GanttScreen

    return GanttScreen(console.desk, ascii_only=console.ascii_only)


def _charts(console: Console) -> View:
    from mam_tui.screens.charts import ChartsScreen

    return ChartsScreen(console.desk, ascii_only=console.ascii_only)


def _graph(console: Console) -> View:
    from mam_tui.screens.graph import GraphScreen

    return GraphScreen(console.desk, ascii_only=console.ascii_only)


def _nodes(console: Console) -> View:
    from mam_tui.screens.nodes import NodesScreen

    return NodesScreen(console.desk, ascii_only=console.ascii_only)


def _groups(console: Console) -> View:
    from mam_tui.screens.groups import GroupsScreen

    return GroupsScreen(console.desk, ascii_only=console.ascii_only)


VIEWS: Mapping[str, ViewKind] = {
    kind.name: kind
    for kind in (
        ViewKind(BOARD, "1", "every job", _board, True, ("jobs", "j", "ls")),
        ViewKind(
            *("sessions", "2", "every agent session and its screen", _sessions, True),
            aliases=("ss", "agents"),
        ),
        ViewKind(
            *("fleet", "3", "the screens of many agents at once", _fleet),
            aliases=("fl", "screens", "panes"),
        ),
        ViewKind(
            *("attention", "4", "what needs a person, the most urgent first", _attention),
            aliases=("needs", "inbox"),
        ),
        ViewKind("gantt", "5", "what ran when, in lanes", _gantt, True, ("bars",)),
        ViewKind(
            *("charts", "6", "throughput, outcomes, times and costs", _charts),
            aliases=("stats",),
        ),
        ViewKind(
            *("history", "7", "every job that ever was, and who did what", _history),
            aliases=("hi",),
        ),
        ViewKind(
            *("graph", "8", "what comes after what, and what holds it back", _graph),
            aliases=("deps", "tree"),
        ),
        ViewKind(
            *("nodes", "9", "the hosts that run jobs, and how they stand", _nodes),
            aliases=("hosts",),
        ),
        ViewKind(
            *("groups", "0", "how many of each group may run, and who said so", _groups),
            aliases=("gr", "slots"),
        ),
    )
}


class Views:
    """Which view is seen, and which was seen before."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._made: dict[str, View] = {}
        self._before = self._latest = BOARD

    @property
    def current(self) -> View | None:
        """What lies directly on the board; None: the board itself is the view."""
        stack = self._console.screen_stack
        above = stack[_OVER_THE_BOARD] if len(stack) > _OVER_THE_BOARD else None
        return above if isinstance(above, View) else None

    @property
    def seen(self) -> View | None:
        """The current one, if it is on top and whole: only then is it told what changes."""
        view = self.current
        return view if view is not None and view.is_seen and view.is_whole else None

    @property
    def name(self) -> str:
        """Of the view that is seen, or lies below what is seen."""
        return self.current.NAME if self.current is not None else BOARD

    @property
    def blind_to_the_past(self) -> str | None:
        """The name of the view that is seen, if it shows only what is now."""
        return None if VIEWS[self.name].shows_past else self.name

    def go(self, name: str) -> None:
        """To a view by its name; what lies over the board is left for that."""
        console = self._console
        if isinstance(console.screen, ModalScreen):
            return
        if console.desk.past is not None and not VIEWS[name].shows_past:
            words = f"the view {name} shows only what is now: {THE_PAST}"
            console.notify(words, severity="warning", markup=False)
            return
        seen = self.name
        if name != seen:
            self._before = seen
        self._latest = name
        wanted = self._made.get(name)
        while len(console.screen_stack) > _OVER_THE_BOARD and console.screen is not wanted:
            console.pop_screen()
        # A view that is taken off and put on again may be told of the two in the wrong order, and
        # then it rests while it is seen.
        if name == BOARD or console.screen is wanted:
            return
        if name not in self._made:
            self._made[name] = VIEWS[name].make(console)
            console.install_screen(self._made[name], name)
        console.push_screen(name)

    def go_back(self) -> None:
        """To the view that was seen before this one; after Esc, to the one that was left by it."""
        self.go(self._latest if self._before == self.name else self._before)
