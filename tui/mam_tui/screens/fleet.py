"""The fleet: the screens of many agents at once, live, and one word for all of those marked.

The one that has the focus is looked at five times a second, the others of the page once; of
pages that are not seen nothing is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from mam_core.safe_text import clip, one_line
from mam_tui.actions import ACTIONS, Action, Place, key_of, refusal
from mam_tui.desk import Desk
from mam_tui.fleet.choice import PER_PAGE, By, Choice, Fleet
from mam_tui.folding import Folded
from mam_tui.screens.session_acts import SessionActs
from mam_tui.screens.talk import Talk
from mam_tui.screens.view import bindings
from mam_tui.screens.watching import WatchingView
from mam_tui.sessions.reasons import why_not
from mam_tui.sessions.rows import SessionRow
from mam_tui.sessions.watch import SessionLook
from mam_tui.widgets.detail.pane import Sight
from mam_tui.widgets.filter_line import FilterLine
from mam_tui.widgets.fleet_grid import FleetGrid
from mam_tui.widgets.key_bar import KeyBar
from mam_tui.widgets.status_bar import StatusBar

#: Of the actions of other places those that make sense here, too.
_BORROWED = ("open", "filter", "mark", "mark-all", "clear-marks", "restore")
_WIDE = 40


class FleetScreen(WatchingView):
    """Grid, filter, keys."""

    DEFAULT_CSS = """
    FleetScreen.-empty FleetGrid { display: none; }
    """
    NAME = "fleet"
    PLACES = (Place.FLEET, Place.EVERYWHERE)
    BINDINGS: ClassVar[list[BindingType]] = bindings(PLACES, _BORROWED)

    def __init__(
        self, desk: Desk, talk: Talk, acts: SessionActs, *, ascii_only: bool = False
    ) -> None:
        super().__init__(desk, talk, acts, ascii_only=ascii_only)
        self.fleet = Fleet(desk)
        self._left_with: str | None = None  #: the board's job, when this was seen last
        self._has_chosen = False  #: the operator went to one of them since this came up

    def compose(self) -> ComposeResult:
        yield StatusBar(ascii_only=self._ascii)
        yield Static(classes="trouble", markup=False)
        yield FleetGrid(self.fleet, ascii_only=self._ascii)
        yield Static("looking …", classes="empty", markup=False)
        yield FilterLine()
        yield KeyBar()

    @property
    def grid(self) -> FleetGrid:
        return self.query_one(FleetGrid)

    def on_mount(self) -> None:
        self.grid.focus()

    def on_screen_resume(self) -> None:
        self._has_chosen = False
        self._follow_board()

    def on_screen_suspend(self) -> None:
        """The board goes where the operator went, so that going there finds the same job."""
        board = self.desk.board
        row = self._focused if self._has_chosen else None
        if row is not None and (line := board.line_of(row.job_id)) is not None:
            self.console.board.table.move(line)
        self._left_with = board.cursor

    def _follow_board(self) -> None:
        """Only if the operator went to another job meanwhile."""
        cursor = self.desk.board.cursor
        if cursor != self._left_with:
            self._left_with = cursor
            self.fleet.derive()
            self.fleet.focus_job(cursor)

    # -- what is seen --------------------------------------------------------------------------

    def take(self, folded: Folded) -> None:
        """Which jobs there are may decide who is seen; how they stand the next look tells."""
        self.settle()

    def take_look(self, look: SessionLook) -> None:
        if not look.is_stale:
            is_first = not self.desk.sessions.rows
            self.desk.sessions.put(look.rows)
            if is_first:
                self.fleet.derive()
                self.fleet.focus_job(self.desk.board.cursor)

    def take_sights(self, sights: Mapping[str, Sight]) -> None:
        self.grid.see(sights)

    def settle(self) -> None:
        """Everything says how it stands now."""
        fleet = self.fleet
        fleet.derive()
        self.set_class(not fleet.rows, "-empty")
        if not fleet.rows:
            self.query_one(".empty", Static).update(self._why_empty())
        self.grid.settle()
        by_filter = fleet.choice.by is By.FILTER
        self.query_one(StatusBar).standing = self.console.standing()._replace(
            view=self._where(),
            filter=self.desk.board.filter.text if by_filter else "",
            marked=len(fleet.marks),
            shown=len(fleet.rows),
            total=len(self.desk.sessions.rows),
        )
        self.query_one(KeyBar).show(self.keys())
        self._watch()

    def _where(self) -> str:
        fleet = self.fleet
        page = f"  page {fleet.page + 1}/{fleet.pages}" if fleet.pages > 1 else ""
        return f"fleet > {clip(one_line(fleet.choice.words), _WIDE)}{page}"

    def _why_empty(self) -> str:
        if not self.desk.sessions.rows:
            return self.why_none()
        key = key_of(ACTIONS["which-screens"], self.desk)
        words = {
            By.ALL: "there is no session",
            By.FILTER: "no session has a job that fits the filter",
            By.GROUP: f"no session works for {self.fleet.choice.words} now",
        }
        return f"{one_line(words[self.fleet.choice.by])}\n\n{key}  chooses others"

    def _watch(self) -> None:
        page = [row.pane_id for row in self.fleet.page_rows() if row.pane_id]
        if not self.is_live:
            page = []
        focused = self._focused
        near = [one for one in page if focused is not None and one == focused.pane_id]
        self.watch_panes.look_at(near, [one for one in page if one not in near])

    @property
    def _focused(self) -> SessionRow | None:
        at = self.fleet.at
        return None if at is None else self.fleet.rows[at]

    # -- what is asked -------------------------------------------------------------------------

    def knows(self, action: Action) -> bool:
        return super().knows(action) or action.name in _BORROWED

    def lacks(self, name: str) -> str | None:
        fleet = self.fleet
        if name in ("mark", "mark-all"):
            return None if fleet.rows else "there is no session here"
        if name == "more-screens" and fleet.per_page == PER_PAGE[-1]:
            return f"{PER_PAGE[-1]} are as many as a page has"
        if name == "fewer-screens" and fleet.per_page == PER_PAGE[0]:
            return "there is only one already"
        if (reason := refusal(ACTIONS[name], self.desk)) is not None:
            return reason
        if name == "broadcast":
            if not fleet.marks:
                return "mark some first: space; m says it to one"
            return None if fleet.listening() else "none of the marked ones has a job just now"
        if not fleet.rows and name in ("attach", "say", "answer", "open"):
            return "there is no session here"
        return why_not(ACTIONS[name], self.desk)

    def keys(self) -> list[tuple[str, str]]:
        """With the mark in front: without one nothing can be said to many."""
        found = super().keys()
        mark = (key_of(ACTIONS["mark"], self.desk), ACTIONS["mark"].words)
        first = [*found[:1], mark]
        return sorted(found, key=lambda pair: pair not in first)

    def on_fleet_grid_moved(self) -> None:
        self._has_chosen = True
        self.settle()

    def on_fleet_grid_opened(self) -> None:
        self.action_act("open")

    def on_filter_line_changed(self, event: FilterLine.Changed) -> None:
        self.console.board.narrow(event.chosen)
        self.fleet.choose(Choice(By.FILTER) if event.chosen.text else Choice())
        self.settle()

    def on_filter_line_left(self) -> None:
        self.grid.focus()

    def _do_filter(self) -> None:
        self.query_one(FilterLine).open(self.desk.board.filter.text)

    def _do_which_screens(self) -> None:
        self.fleet.choose_next()

    def _do_more_screens(self) -> None:
        self.fleet.resize(1)

    def _do_fewer_screens(self) -> None:
        self.fleet.resize(-1)

    def _do_mark(self) -> None:
        self.fleet.marks ^= {self._row.name}

    def _do_mark_all(self) -> None:
        self.fleet.marks |= {row.name for row in self.fleet.rows}

    def _do_clear_marks(self) -> None:
        self.fleet.marks.clear()

    def _do_broadcast(self) -> None:
        listening = self.fleet.listening()
        self._talk.broadcast(listening, deaf=len(self.fleet.marks) - len(listening))

    @property
    def _row(self) -> SessionRow:
        """Only after `lacks` had nothing against it."""
        row = self._focused
        assert row is not None
        return row

    def _do_open(self) -> None:
        self.console.board.open_job(self._row.job_id)

    def _do_attach(self) -> None:
        self._talk.attach(self._row.name)

    def _do_say(self) -> None:
        self._talk.say(self._row.job_id)

    def _do_answer(self) -> None:
        self._talk.answer(self._row.job_id)
