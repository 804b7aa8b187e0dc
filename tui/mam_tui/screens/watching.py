"""What the views of sessions have in common: they are looked at while they are seen, and only then.

Once a second at all sessions, and at their screens as often as the view asks, both on threads
and over the desk's one client of tmux.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from textual.message import Message
from textual.widgets import Static

from mam_core.safe_text import one_line
from mam_tui.desk import Desk
from mam_tui.panes import PaneWatch
from mam_tui.screens.session_acts import SessionActs
from mam_tui.screens.talk import Talk
from mam_tui.screens.view import View
from mam_tui.sessions.watch import SessionLook, SessionWatch
from mam_tui.widgets.detail.pane import Sight

_NO_TMUX = """\
tmux is not here, and agent sessions need it: version 3.2 or newer

apt install tmux    dnf install tmux    brew install tmux

without it `mam work --agent-session LABEL` runs jobs in a terminal of its own"""
_NO_SESSIONS = """\
there are no agent sessions yet

s  starts one
mam spawn --agent-session tmux:NAME --agent AGENT  does it from a shell"""

_NO_PAST = "there was no job then, and so nothing is known of sessions"


class WatchingView(View):
    """Has a ``Static`` of the class ``trouble``, and one of the class ``empty``."""

    DEFAULT_CSS = """
    WatchingView .trouble { height: auto; color: $text-error; text-style: bold; display: none; }
    WatchingView .trouble.-on { display: block; }
    """

    class Looked(Message):
        """From the looking thread."""

        def __init__(self, look: SessionLook) -> None:
            super().__init__()
            self.look = look

    class Seen(Message):
        """From the panes' thread."""

        def __init__(self, sights: Mapping[str, Sight]) -> None:
            super().__init__()
            self.sights = sights

    def __init__(
        self, desk: Desk, talk: Talk, acts: SessionActs, *, ascii_only: bool = False
    ) -> None:
        super().__init__(desk, ascii_only=ascii_only)
        self._talk = talk
        self._acts = acts
        self._last: SessionLook | None = None
        self.watch_sessions = SessionWatch(desk, lambda look: self._post(self.Looked(look)))
        self.watch_panes = PaneWatch(desk.panes, lambda sights: self._post(self.Seen(sights)))

    # -- what a view knows ---------------------------------------------------------------------

    def take_look(self, look: SessionLook) -> None:
        """The sessions as they are now."""
        raise NotImplementedError

    def take_sights(self, sights: Mapping[str, Sight]) -> None:
        """The screens that look different now, by pane."""
        raise NotImplementedError

    # -- while it is seen ----------------------------------------------------------------------

    def on_mount(self) -> None:
        # Another program may have the terminal for hours, and what is seen would pile up.
        self.app.app_suspend_signal.subscribe(self, lambda _: self._rest(), immediate=True)
        self.app.app_resume_signal.subscribe(self, lambda _: self._return())

    def on_screen_resume(self) -> None:
        self._acts.changed = self.watch_sessions.rounds.soon
        self._resume()

    def on_screen_suspend(self) -> None:
        self._rest()

    def on_unmount(self) -> None:
        self.watch_sessions.rounds.close()
        self.watch_panes.close()

    @property
    def is_live(self) -> bool:
        """Somebody sees it, and the picture is of now and not held."""
        return self.is_seen and self._follows

    @property
    def _follows(self) -> bool:
        return self.desk.past is None and self.console.standing().paused is None

    def _rest(self) -> None:
        self.watch_sessions.rounds.rest()
        self.watch_panes.look_at(())

    def _return(self) -> None:
        if self.is_seen:
            self._resume()

    def _resume(self) -> None:
        if self._follows:
            self.watch_sessions.rounds.watch()
        else:
            self.watch_sessions.rounds.rest()
        self.settle()

    def _post(self, message: Message) -> None:
        """On a thread."""
        with suppress(RuntimeError):  # the console has just been left
            self.post_message(message)

    # -- what is seen --------------------------------------------------------------------------

    def on_watching_view_looked(self, event: Looked) -> None:
        event.stop()
        if not self.is_seen or self.desk.past is not None:
            return
        self._last = event.look
        self.take_look(event.look)
        line = self.query_one(".trouble", Static)
        line.update(one_line(event.look.trouble))
        line.set_class(bool(event.look.trouble), "-on")
        self.settle()

    def on_watching_view_seen(self, event: Seen) -> None:
        event.stop()
        if self.is_seen:
            self.take_sights(event.sights)

    def why_none(self) -> str:
        """Why there are no sessions, as far as that is known."""
        if self.desk.past is not None:
            return _NO_PAST
        if self._last is None:
            held = self.console.standing().paused is not None
            return "the picture is held: p lets it go on" if held else "looking …"
        return _NO_SESSIONS if self._last.has_tmux else _NO_TMUX

    # -- what is asked -------------------------------------------------------------------------

    def action_act(self, name: str) -> None:
        super().action_act(name)
        self._resume()  # the picture may be held now, or read-only

    def _do_refresh(self) -> None:
        self.watch_sessions.rounds.soon()
        self.console.act("refresh")

    def _do_spawn(self) -> None:
        self._acts.spawn()

    def _do_restore(self) -> None:
        self._acts.restore()
