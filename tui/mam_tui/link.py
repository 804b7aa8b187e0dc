"""How the console hangs together with its registry: what is wrong, and since when.

Two things can be lost. Without the folder the picture is old, and says of when it
is. Without the broker it is as good as before, and a little later: files tell.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from mam_core.events.feed import FeedState
from mam_tui.arrivals import Trouble
from mam_tui.folding import Folded

#: A broker that is just starting, or is started anew by its keeper, is not worth a word.
_GRACE_SEC = 1.0


class Link:
    """Kept up by what is told; the status bar says it. Times are the desk's clock's."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.trouble = ""  #: empty: all is well
        self.is_loading = True  #: nothing was read yet
        self.lost_at: float | None = None  #: since then nothing can be read: the picture is old
        self.broker = ""  #: why no broker is heard; empty: one is, or none was looked for yet
        self.broker_lost_at: float | None = None  #: None also where none was heard before
        self.public: tuple[str, ...] = ()  #: brokers where anybody can read and forge
        self._clock = clock
        self._was_read = self._was_heard = self._is_heard = False
        self._troubles = ["", ""]  #: with listening, with our duties

    @property
    def stale_sec(self) -> float | None:
        """How old the picture is; None: it is live."""
        return None if self.lost_at is None else max(0.0, self._clock() - self.lost_at)

    @property
    def well(self) -> str:
        """How it hangs together while nothing is wrong; empty: something is, or is not known."""
        if self.is_loading or self.trouble or self.broker or not self._was_read:
            return ""
        return "live, broker heard" if self._is_heard else "live"

    def take(self, folded: Folded) -> None:
        """What the bridge says."""
        if folded.loaded is not None:
            self.is_loading = False
            self._troubles = ["", ""]
        for notice in folded.notices:
            if isinstance(notice, Trouble):
                self._troubles[not notice.is_blind] = notice.text

    def look(self, state: FeedState | None) -> bool:
        """At the feed, which is None while it cannot be had; True when that changes anything."""
        was = (self.trouble, self.lost_at, self.broker, self.public, self.well)
        self._look_at_records(state)
        if state is not None:
            self._look_at_broker(state)
            self.public = state.public
        return was != (self.trouble, self.lost_at, self.broker, self.public, self.well)

    def _look_at_records(self, state: FeedState | None) -> None:
        listening, duties = self._troubles
        blind = state.blind if state is not None else listening
        self.trouble = blind or duties
        if not blind:
            self._was_read |= state is not None
            self.lost_at = None
        elif self._was_read and self.lost_at is None:  # one that never was is not lost
            self.lost_at = self._clock()

    def _look_at_broker(self, state: FeedState) -> None:
        self._is_heard = state.broker_up is True
        if state.broker_up is not False:
            self._was_heard |= state.broker_up is True
            self.broker, self.broker_lost_at = "", None
        elif time.monotonic() - state.broker_since >= _GRACE_SEC:
            self.broker = state.broker_text or "it does not answer"
            if self._was_heard and self.broker_lost_at is None:
                self.broker_lost_at = self._clock()
