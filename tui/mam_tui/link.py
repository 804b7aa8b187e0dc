"""How the console hangs together with its registry: what is wrong, and since when.

Two things can be lost. Without the folder the picture is old, and says of when it
is. Without a broker it is as good as before, and a little later, read from disk;
that goes for every broker that a live job uses.
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
        self.broker_where = ""  #: which one, where it is not the registry's usual one
        self.public: tuple[str, ...] = ()  #: brokers where anybody can read and forge
        self._clock = clock
        self._was_read = self._was_heard = False
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
        return "live"

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
        was = self._told()
        self._look_at_records(state)
        if state is not None:
            self._look_at_broker(state)
            self.public = state.public
        return was != self._told()

    def _told(self) -> tuple[object, ...]:
        return (
            *(self.trouble, self.lost_at, self.broker, self.broker_where, self.broker_lost_at),
            *(self.public, self.well),
        )

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
        now = time.monotonic()
        if state.broker_up is False:
            if now - state.broker_since >= _GRACE_SEC:
                if self.broker_where or not self.broker:
                    self.broker_where, self.broker_lost_at = "", None
                self.broker = state.broker_text or "it does not answer"
                if self._was_heard and self.broker_lost_at is None:
                    self.broker_lost_at = self._clock()
            return
        self._was_heard |= state.broker_up is True
        offline = [one for one in state.offline if now - one.since >= _GRACE_SEC]
        if not offline:
            self.broker, self.broker_where, self.broker_lost_at = "", "", None
            return
        first = min(offline, key=lambda one: one.since)
        more = f" +{len(offline) - 1}" if len(offline) > 1 else ""
        if self.broker_where.partition(" ")[0] != first.place:
            self.broker_lost_at = self._clock() - (now - first.since)
        self.broker, self.broker_where = first.text, f"{first.place}{more}"
