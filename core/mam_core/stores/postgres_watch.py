"""PostgreSQL, watched: NOTIFY says when, change numbers say what; a lost server is a lost sight.

A notice is a hint: the table is asked by number after each of them, once in a while
without one, and at once after the link was lost. So nothing is missed, whatever is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mam_core.errors import MamError, RegistryMissing
from mam_core.events.watch import Changes, Sight
from mam_core.stores.postgres_door import Connection, DatabaseError, explained
from mam_core.stores.postgres_talk import CHANGES
from mam_core.stores.sql_base import ChangedSince

#: Without a notice it is asked all the same, which also tells whether the server is there.
_LOOK_SEC = 1.0
_SHORTEST_PAUSE_SEC, _LONGEST_PAUSE_SEC = 0.1, 2.0


class PostgresWatch:
    """Listens on a thread and a connection of its own."""

    def __init__(
        self,
        connected: Callable[[], Connection],
        place: str,
        changed_since: ChangedSince,
        wake: Callable[[], None],
    ) -> None:
        self._connected = connected
        self._place = place
        self._changed_since = changed_since
        self._wake = wake
        self._lock = threading.Lock()
        self._stems: set[str] = set()
        self._sights: list[Sight] = []
        self._number: int | None = None
        self._known: dict[str, int] = {}  #: told before, by a transaction above the number
        self._stop = threading.Event()
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mam-listen", daemon=True)
        self._ear: Connection | None = None
        self.up: bool | None = None
        self.since = time.monotonic()
        self.text = ""

    def start(self) -> None:
        self._thread.start()
        self._began.wait()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def drain(self) -> Changes:
        with self._lock:
            changes = Changes(self._stems, self._sights, False)
            self._stems, self._sights = set(), []
        return changes

    # -- on our own thread -----------------------------------------------------------------

    def _run(self) -> None:
        pause = _SHORTEST_PAUSE_SEC
        try:
            while not self._stop.is_set():
                try:
                    self._listen()
                    pause = _SHORTEST_PAUSE_SEC
                except (MamError, DatabaseError) as problem:
                    said = problem if isinstance(problem, MamError) else None
                    self._see(False, str(said or explained(problem, self._place)))
                    self._began.set()
                    self._stop.wait(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_SEC)
        finally:
            self._began.set()

    def _listen(self) -> None:
        """Until the link is lost, or we are to end."""
        with self._connected() as ear:
            name = ear.execute(f"SELECT quote_ident({CHANGES})".encode()).fetchone()
            assert name is not None
            ear.execute(f"LISTEN {name[0]}".encode())
            self._look()
            self._see(True, f"listening to {self._place}")
            self._began.set()
            while not self._stop.is_set():
                for _ in ear.notifies(timeout=_LOOK_SEC, stop_after=1):
                    pass
                ear.execute(b"SELECT 1")
                self._look()

    def _look(self) -> None:
        known = self._number
        try:
            self._number, changed = self._changed_since(known)
        except RegistryMissing:
            self._number, changed = 0, {}
        # A transaction that is still open holds the number back: what came after it is told once.
        news = {job_id for job_id, by in changed.items() if self._known.get(job_id) != by}
        self._known = changed
        if news:
            with self._lock:
                self._stems |= news
            self._wake()

    def _see(self, up: bool, text: str) -> None:
        with self._lock:
            if up == self.up:
                return
            self.up, self.text, self.since = up, text, time.monotonic()
            self._sights.append(Sight(up, text, self.since))
        self._wake()
