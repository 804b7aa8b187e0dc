"""The way into the past and back: reads it, shows it, moves in it, and leaves it.

Meanwhile the feed is held, as when the operator holds the picture: the live board stays as
it was, with its cursor and its filter, and gets all that came when the past is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from textual.screen import ModalScreen, Screen
from textual.widgets import Input, TextArea

from mam_core.errors import InvalidField
from mam_core.operations.replay import moment
from mam_tui import garbage
from mam_tui.actions import ACTIONS, key_of
from mam_tui.errands import later
from mam_tui.travel.banner import Banner
from mam_tui.travel.reading_past import ReadingPast, Ready
from mam_tui.travel.step import Step
from mam_tui.travel.traveller import Traveller
from mam_tui.widgets.key_bar import key_name

if TYPE_CHECKING:
    from textual.timer import Timer

    from mam_tui.app import Console

#: Between two moves while it plays: ten redraws a second, however fast time goes.
_FRAME_SEC = 0.1

_MOVES: Mapping[str, Callable[[Traveller], None]] = {
    "earlier": lambda traveller: traveller.step(-1),
    "later": lambda traveller: traveller.step(1),
    "play": Traveller.turn,
    "faster": lambda traveller: traveller.change_speed(1),
    "slower": lambda traveller: traveller.change_speed(-1),
    "back-10s": lambda traveller: traveller.go(-10),
    "on-10s": lambda traveller: traveller.go(10),
    "back-1m": lambda traveller: traveller.go(-60),
    "on-1m": lambda traveller: traveller.go(60),
    "back-10m": lambda traveller: traveller.go(-600),
    "on-10m": lambda traveller: traveller.go(600),
    "first-moment": lambda traveller: traveller.go_to(traveller.begin),
    "last-moment": lambda traveller: traveller.go_to(traveller.last),
}


class Travel:
    """Of one console, made when it is first asked for."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._desk = console.desk
        self._share: float | None = None  #: of the logs that are read; None: nobody reads
        self.traveller: Traveller | None = None  #: None: we are not in the past
        self._timer: Timer | None = None
        self._ticked_at = 0.0
        tell = partial(later, console)
        self._reading = ReadingPast(
            console.desk,
            partial(tell, self._read),
            partial(tell, self._enter),
            partial(tell, self._failed),
        )

    def close(self) -> None:
        self._reading.close()

    # -- what is asked ---------------------------------------------------------------------------

    @property
    def is_reading(self) -> bool:
        return self._share is not None

    def hears(self, name: str) -> bool:
        """Whether a key of the past means something now; while one types it is a letter."""
        is_on = self.traveller is not None or (name == "now" and self._share is not None)
        screen = self._console.screen
        if not is_on or isinstance(screen, ModalScreen):
            return False
        return not isinstance(screen.focused, Input | TextArea)

    def toggle(self) -> None:
        """Into the past, where something changed last; out of it, when we are in it."""
        if self.traveller is not None or self._share is not None:
            self.leave()
        else:
            self._start(None)

    def go_to(self, text: str) -> None:
        """``14:05``, ``-10m``, ``2026-11-17T14:05``; ``now`` leaves the past."""
        if text == "now":
            self.leave()
            return
        try:
            at = moment(text, self._desk.clock())
        except InvalidField as problem:
            self._warn(problem.message)
            return
        if self.traveller is None:
            self._start(at)
        else:
            self._move(partial(Traveller.go_to, moment=at))

    def do(self, name: str) -> None:
        """An action of the past by its name."""
        if name == "now":
            self.leave()
        elif self.traveller is not None:
            self._move(_MOVES[name])

    def chose(self, share: float) -> None:
        """A place on the slider."""
        if (traveller := self.traveller) is not None:
            at = traveller.begin + share * (traveller.end - traveller.begin)
            self._move(partial(Traveller.go_to, moment=at))

    def leave(self) -> None:
        """Back to now; or, while it is still read, it is read no further."""
        self._reading.stop()
        self._share = None
        if self.traveller is not None:
            self.traveller = None
            self._play()
            self._desk.past = None
            self._tell(None)
            self._console.inflow.go_on()
        self.settle()

    # -- reading it ------------------------------------------------------------------------------

    def _start(self, at: float | None) -> None:
        if (view := self._console.views.blind_to_the_past) is not None:
            self._warn(f"the view {view} shows only what is now: 1 goes to the board")
            return
        self._share = 0.0
        self._reading.start(at)
        self.settle()

    def _read(self, share: float) -> None:
        if self._share is not None:
            self._share = share
            self.settle()

    def _failed(self, words: str) -> None:
        self._share = None
        self.settle()
        self._warn(words)

    def _warn(self, words: str) -> None:
        self._console.notify(words, severity="warning", markup=False)

    def _enter(self, ready: Ready) -> None:
        if self._share is None:
            return  # it was stopped meanwhile
        self._share = None
        console, screen = self._console, self._console.screen
        is_typing = isinstance(screen.focused, Input | TextArea)
        if isinstance(screen, ModalScreen) or is_typing or console.views.blind_to_the_past:
            self.settle()
            key = key_name(key_of(ACTIONS["travel"], self._desk))
            self._warn(f"the past has been read; {key} goes there when you are done here")
            return
        garbage.set_aside()  # all that was read will stay: else a step waits for a look at it
        console.inflow.wait()
        self.traveller = ready.traveller
        self._desk.past = ready.picture
        self._tell(None)
        self.settle()

    # -- moving in it ----------------------------------------------------------------------------

    def _move(self, how: Callable[[Traveller], None]) -> None:
        traveller = self.traveller
        assert traveller is not None
        before = traveller.at
        how(traveller)
        self._play()
        if traveller.at != before:
            self._show()
        self.settle()

    def _play(self) -> None:
        """The timer runs while time goes on, and at no other time."""
        is_playing = self.traveller is not None and self.traveller.is_playing
        if is_playing and self._timer is None:
            self._ticked_at = time.monotonic()
            self._timer = self._console.set_interval(_FRAME_SEC, self._tick)
        elif not is_playing and self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _tick(self) -> None:
        traveller = self.traveller
        if traveller is None or not self._console.is_running:
            return
        now = time.monotonic()
        passed, self._ticked_at = now - self._ticked_at, now
        if traveller.pass_time(passed):
            self._show()
        self._play()
        self.settle()

    def _show(self) -> None:
        picture = self._desk.past
        if picture is not None and self.traveller is not None:
            self._tell(picture.move(self.traveller.at))

    def _tell(self, step: Step | None) -> None:
        console = self._console
        console.board.take_up(step)  # also below a view: an open job is its
        if (view := console.views.seen) is not None:
            view.take_up(step)

    # -- the banner ------------------------------------------------------------------------------

    def settle(self) -> None:
        """Every screen that can be seen says where we are."""
        for screen in self._screens():
            banners = screen.query(Banner)
            if self.traveller is None and self._share is None:
                banners.remove()
                continue
            banner = banners.first() if banners else self._hang(screen)
            if self.traveller is not None:
                banner.show(self.traveller)
            else:
                banner.read(self._share or 0.0)

    def _hang(self, screen: Screen[object]) -> Banner:
        key = key_name(key_of(ACTIONS["now"], self._desk))
        banner = Banner(key, self._desk.clock, ascii_only=self._console.ascii_only)
        screen.mount(banner, before=0)
        return banner

    def _screens(self) -> Iterable[Screen[object]]:
        with suppress(IndexError):
            # Below them lies the one that Textual brings.
            for screen in self._console.screen_stack[1:]:
                if screen.is_mounted and not isinstance(screen, ModalScreen):
                    yield screen
