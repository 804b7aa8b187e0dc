"""The sessions: every agent session, how it stands, what it is at, and its screen below.

Looked at once a second by the desk's one client of tmux, and only while this is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from mam_tui.actions import ACTIONS, Place
from mam_tui.desk import Desk
from mam_tui.screens.session_acts import SessionActs
from mam_tui.screens.talk import Talk
from mam_tui.screens.view import bindings
from mam_tui.screens.watching import WatchingView
from mam_tui.sessions.reasons import why_not
from mam_tui.sessions.rows import SessionRow
from mam_tui.sessions.watch import SessionLook
from mam_tui.widgets.detail.heading import Heading, Words
from mam_tui.widgets.detail.pane import Screenful, Sight
from mam_tui.widgets.key_bar import KeyBar
from mam_tui.widgets.session_table import SessionTable
from mam_tui.widgets.status_bar import StatusBar

if TYPE_CHECKING:
    from mam_tui.travel.step import Step

#: With less height the table has all of it.
_ROOM_FOR_A_SCREEN = 18

_NO_PAST_SCREEN = "this is the past: what its screen showed then is kept nowhere"
#: No pane: whatever is to be shown next must be put there.
_ANOTHER = "another"
#: Of the board's actions those that make sense here, too.
_BORROWED = ("sort", "reverse", "detail", "open", "export")


class SessionsScreen(WatchingView):
    """Table, screen of the one under the cursor, keys."""

    DEFAULT_CSS = """
    SessionsScreen.-empty SessionTable { display: none; }
    SessionsScreen Heading { display: none; }
    SessionsScreen Screenful { display: none; }
    SessionsScreen.-screen SessionTable { max-height: 40%; }
    SessionsScreen.-screen Heading { display: block; }
    SessionsScreen.-screen Screenful { display: block; height: 1fr; }
    """
    NAME = "sessions"
    PLACES = (Place.SESSIONS, Place.EVERYWHERE)
    BINDINGS: ClassVar[list[BindingType]] = bindings(PLACES, _BORROWED)

    def __init__(
        self, desk: Desk, talk: Talk, acts: SessionActs, *, ascii_only: bool = False
    ) -> None:
        super().__init__(desk, talk, acts, ascii_only=ascii_only)
        self._wants_screen = True
        self._watched = _ANOTHER  #: the pane that is shown

    def compose(self) -> ComposeResult:
        yield StatusBar(ascii_only=self._ascii)
        yield Static(classes="trouble", markup=False)
        yield SessionTable(self.desk.sessions, ascii_only=self._ascii, clock=self.desk.now)
        yield Static("looking …", classes="empty", markup=False)
        yield Heading(ascii_only=self._ascii)
        yield Screenful()
        yield KeyBar()

    @property
    def table(self) -> SessionTable:
        return self.query_one(SessionTable)

    def on_mount(self) -> None:
        self.table.focus()
        self.settle()

    def on_screen_resume(self) -> None:
        self.table.moved()  # the fleet may have seen others, and gone elsewhere

    def on_resize(self, event: events.Resize) -> None:
        self.settle()

    def travelled(self, step: Step | None) -> None:
        if step is None:
            self.table.listed = self.desk.sessions
            self.table.stale = False
            self.table.moved()
            self.query_one(Screenful).clear()
            self._watched = _ANOTHER
        if self.desk.past is not None:
            self.table.put(self.desk.past.seen_sessions())
        self._resume()

    # -- what is seen --------------------------------------------------------------------------

    def take_look(self, look: SessionLook) -> None:
        self.table.stale = look.is_stale
        if not look.is_stale:
            self.table.put(look.rows)

    def take_sights(self, sights: Mapping[str, Sight]) -> None:
        sight = sights.get(self._watched)
        if sight is None:
            return
        screen = self.query_one(Screenful)
        screen.put(sight.lines)
        screen.say(sight.words)
        if not screen.has_focus:
            screen.action_last()  # the prompt and the question stand at the end

    def settle(self) -> None:
        """Everything around the table says how it stands now."""
        rows = self.desk.sessions.rows
        self.query_one(StatusBar).standing = self.console.standing()._replace(
            view=f"sessions {len(rows)}", filter="", marked=0, shown=0, total=0
        )
        self.set_class(not rows, "-empty")
        if not rows:
            self.query_one(".empty", Static).update(self.why_none())
        has_room = bool(rows) and self.size.height >= _ROOM_FOR_A_SCREEN
        self.set_class(self._wants_screen and has_room, "-screen")
        self.table.styles.height = len(rows) + 1 if self.has_class("-screen") else "1fr"
        self.query_one(KeyBar).show(self.keys())
        self._show_screen()

    def _show_screen(self) -> None:
        row = self.desk.sessions.row
        pane_id = row.pane_id if row is not None and self.has_class("-screen") else ""
        if row is not None:
            pane = row.seen.pane
            note = " ".join(filter(None, (row.job_id, pane.title if pane is not None else "")))
            self.query_one(Heading).words = Words(row.name, row.face, 0, note)
        if pane_id != self._watched:
            self._watched = pane_id
            screen = self.query_one(Screenful)
            screen.clear()
            none = "it has no screen now" if self.desk.past is None else _NO_PAST_SCREEN
            screen.say("" if pane_id else none)
        self.watch_panes.look_at([pane_id] if pane_id and self.is_live else ())

    # -- what is asked -------------------------------------------------------------------------

    def lacks(self, name: str) -> str | None:
        """Why an action cannot be done to the session under the cursor; None when it can."""
        return why_not(ACTIONS[name], self.desk)

    def on_short_table_moved(self) -> None:
        self.settle()

    def on_short_table_opened(self) -> None:
        self.action_act("open")

    def _do_open(self) -> None:
        self.console.board.open_job(self._row.job_id)

    def _do_export(self) -> None:
        rows = [row.to_dict() for row in self.desk.sessions.rows]
        self.console.jobs.export_rows(rows, "session", "sessions")

    def _do_back(self) -> None:
        if self.query_one(Screenful).has_focus:
            self.table.focus()
        else:
            self.dismiss()

    def _do_detail(self) -> None:
        self._wants_screen = not self._wants_screen
        self.settle()

    def _do_sort(self) -> None:
        self.table.sort_by_next()

    def _do_reverse(self) -> None:
        self.table.reverse()

    @property
    def _row(self) -> SessionRow:
        """Only after `lacks` had nothing against it."""
        row = self.desk.sessions.row
        assert row is not None
        return row

    def _do_attach(self) -> None:
        self._talk.attach(self._row.name)

    def _do_say(self) -> None:
        self._talk.say(self._row.job_id)

    def _do_answer(self) -> None:
        self._talk.answer(self._row.job_id)

    def _do_stop(self) -> None:
        self._acts.stop(self._row, now=False)

    def _do_stop_now(self) -> None:
        self._acts.stop(self._row, now=True)
