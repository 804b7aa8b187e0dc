"""A watch that looks on a thread of its own, and keeps what it saw until it is fetched."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from mam_core.events.watch import Changes, Sight
from mam_core.pace import PARTING_SEC


class Lookout(ABC):
    """One thread, from `start` to `close`; `wake` is called when there is news."""

    def __init__(self, name: str, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._stems: set[str] = set()
        self._sights: list[Sight] = []
        self._in_doubt = False
        self._stop = threading.Event()
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.up: bool | None = None
        self.since = time.monotonic()
        self.text = ""

    def start(self) -> None:
        """Returns when every later change will be seen, or it is known that none can be."""
        self._thread.start()
        self._began.wait()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(PARTING_SEC)

    def drain(self) -> Changes:
        with self._lock:
            changes = Changes(self._stems, self._sights, self._in_doubt)
            self._stems, self._sights, self._in_doubt = set(), [], False
        return changes

    # -- on our own thread -----------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._look_out()
        finally:
            self._began.set()

    @abstractmethod
    def _look_out(self) -> None:
        """Until `_stop`; sets `_began` as soon as `start` may return."""

    def _note(self, stems: set[str], *, in_doubt: bool = False) -> None:
        if stems or in_doubt:
            with self._lock:
                self._stems |= stems
                self._in_doubt |= in_doubt
            self._wake()

    def _see(self, up: bool, text: str) -> None:
        with self._lock:
            if up == self.up:
                return
            self.up, self.text, self.since = up, text, time.monotonic()
            self._sights.append(Sight(up, text, self.since))
        self._wake()
