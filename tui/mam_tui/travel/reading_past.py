"""The one pass over the logs, on a thread: it tells how far it is, and may be stopped.

What was read stays read: the next pass goes on from there, and reads what came since.
The first picture is made on the thread, too, since it is of every job there is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from mam_core.operations.replay import Loading, loading
from mam_core.pace import PARTING_SEC
from mam_tui.desk import Desk
from mam_tui.threads import started
from mam_tui.travel.picture import Picture
from mam_tui.travel.traveller import Traveller

#: Between two words about how far it is.
_TELL_SEC = 0.1


class Ready(NamedTuple):
    """The past can be entered, at the moment that was asked for."""

    traveller: Traveller
    picture: Picture


class ReadingPast:
    """Of one console. All callbacks come on the reading thread."""

    def __init__(
        self,
        desk: Desk,
        progress: Callable[[float], None],
        ready: Callable[[Ready], None],
        failed: Callable[[str], None],
    ) -> None:
        self._desk = desk
        self._progress = progress
        self._ready = ready
        self._failed = failed
        self._opened = ExitStack()
        self._loading: Loading | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, at: float | None) -> None:
        """For this moment, in place of any that is still read for; None: for the newest."""
        self.stop()
        self._stop = threading.Event()
        self._thread = started("mam-past", self._run, at, self._stop, self._thread)

    def stop(self) -> None:
        """It is over within one step of the progress."""
        self._stop.set()

    def close(self) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join(PARTING_SEC)
        if not self.is_busy:
            self._opened.close()

    def _run(
        self, at: float | None, stop: threading.Event, before: threading.Thread | None
    ) -> None:
        if before is not None:
            before.join()  # it was stopped, and is at its last step; the console does not wait
        if stop.is_set():
            return
        try:
            made = self._read(at, stop)
        except Exception as problem:  # never silent: nobody sees what a thread prints
            self._loading = None
            self._opened.close()
            self._failed(str(problem) or type(problem).__name__)
            return
        if made is not None and not stop.is_set():
            self._ready(made)

    def _read(self, at: float | None, stop: threading.Event) -> Ready | None:
        if self._loading is None:
            registry = self._opened.enter_context(self._desk.open_registry())
            self._loading = loading(registry)
        past, told_at = self._loading.past, 0.0
        now = self._desk.clock()
        for progress in self._loading.run():
            if stop.is_set():
                return None
            if time.monotonic() - told_at >= _TELL_SEC:
                told_at = time.monotonic()
                self._progress(progress.share)
        if self._loading.is_outdated:
            self._loading = None  # a log was replaced: what was read of it is not true
            self._opened.close()
            return self._read(at, stop)
        if past.span is None:
            self._failed("nothing was ever logged here: there is no past to look at")
            return None
        traveller = Traveller(past, at, now)
        desk = self._desk
        return Ready(traveller, Picture(past, traveller.at, desk.live, desk.live_sessions))
