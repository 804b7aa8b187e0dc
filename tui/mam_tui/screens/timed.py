"""What the views of time have in common: they read while they are seen, and draw once a second.

Nothing is read and nothing is drawn while another screen is on top. While the operator holds
the picture, time stands still in it.
"""

from __future__ import annotations

from contextlib import suppress

from textual.message import Message
from textual.timer import Timer

from mam_tui.bars.feed import BarFeed
from mam_tui.desk import Desk
from mam_tui.folding import Folded
from mam_tui.screens.view import View
from mam_tui.widgets.key_bar import KeyBar
from mam_tui.widgets.status_bar import StatusBar

_REDRAW_SEC = 1.0


class TimedView(View):
    """A view of the desk's bars."""

    class BarsRead(Message):
        """From the reading thread."""

    def __init__(self, desk: Desk, *, ascii_only: bool = False) -> None:
        super().__init__(desk, ascii_only=ascii_only)
        self.now = desk.now()
        self._shown_version = -1
        self._timer: Timer | None = None

    @property
    def feed(self) -> BarFeed:
        return self.desk.bars

    @property
    def is_waiting(self) -> bool:
        """Something is still to be read, or to be shown."""
        return self.feed.is_busy or self.feed.version != self._shown_version

    # -- what a kind of view does --------------------------------------------------------------

    def draw(self) -> None:
        """The bars are others now."""
        raise NotImplementedError

    def pass_time(self) -> None:
        """Only time has passed."""
        raise NotImplementedError

    def named(self) -> str:
        """For the status bar."""
        raise NotImplementedError

    # -- while it is seen ----------------------------------------------------------------------

    def on_mount(self) -> None:
        self._timer = self.set_interval(_REDRAW_SEC, self._tick, pause=True)
        # Another program may have the terminal for hours.
        self.app.app_suspend_signal.subscribe(self, lambda _: self._rest(), immediate=True)
        self.app.app_resume_signal.subscribe(self, lambda _: self._return())

    def on_screen_resume(self) -> None:
        self._watch()

    def on_screen_suspend(self) -> None:
        self._rest()

    def on_unmount(self) -> None:
        self.feed.close()

    def _watch(self) -> None:
        self.feed.watch(self._rung, is_loading=self.console.link.is_loading)
        if self._timer is not None:
            self._timer.resume()
        self._tick()
        self.settle()

    def _rest(self) -> None:
        self.feed.rest(self._rung)
        if self._timer is not None:
            self._timer.pause()

    def _return(self) -> None:
        if self.is_seen:
            self._watch()

    def _rung(self) -> None:
        """On the reading thread."""
        with suppress(RuntimeError):  # the console has just been left
            self.post_message(self.BarsRead())

    def on_timed_view_bars_read(self, event: BarsRead) -> None:
        """The first are shown at once; what follows waits for its second."""
        event.stop()
        if not self.feed.is_loaded and self.is_seen:
            self._tick()

    def take(self, folded: Folded) -> None:
        self.feed.take(folded)
        self.settle()

    def _tick(self) -> None:
        if not self.is_seen:
            return
        is_held = self.console.standing().paused is not None
        if not is_held:
            self.now = self.desk.now()
        self.feed.drain()
        if self.feed.version != self._shown_version:
            self._shown_version = self.feed.version
            self.draw()
        elif not is_held:
            self.pass_time()
        self.settle()

    def settle(self) -> None:
        left = self.feed.left
        reading = f", reading {left:,} logs …" if left else ""
        standing = self.console.standing()
        self.query_one(StatusBar).standing = standing._replace(
            view=f"{self.named()}{reading}",
            link=standing.link or self.feed.trouble,
            filter="",
            marked=0,
            shown=0,
            total=0,
        )
        self.query_one(KeyBar).show(self.keys())
