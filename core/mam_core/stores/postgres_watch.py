"""PostgreSQL, watched: NOTIFY says when, change numbers say what; a lost server is a lost sight.

A notice is a hint: the table is asked by number after each of them, once in a while
without one, and at once after the link was lost. So nothing is missed, whatever is.
"""

from __future__ import annotations

from collections.abc import Callable

from mam_core.errors import MamError, RegistryMissing
from mam_core.events.lookout import Lookout
from mam_core.pace import paced_retry
from mam_core.stores.postgres_door import Connection, DatabaseError, explained
from mam_core.stores.postgres_talk import CHANGES
from mam_core.stores.sql_base import ChangedSince

#: Without a notice it is asked all the same, which also tells whether the server is there.
_LOOK_SEC = 1.0
_SHORTEST_PAUSE_SEC, _LONGEST_PAUSE_SEC = 0.1, 2.0


class PostgresWatch(Lookout):
    """Listens on a connection of its own."""

    def __init__(
        self,
        connected: Callable[[], Connection],
        place: str,
        changed_since: ChangedSince,
        wake: Callable[[], None],
    ) -> None:
        super().__init__("mam-listen", wake)
        self._connected = connected
        self._place = place
        self._changed_since = changed_since
        self._number: int | None = None
        self._known: dict[str, int] = {}  #: told before, by a transaction above the number

    def _look_out(self) -> None:
        pause = _SHORTEST_PAUSE_SEC
        while not self._stop.is_set():
            try:
                self._listen()
                pause = _SHORTEST_PAUSE_SEC
            except (MamError, DatabaseError) as problem:
                said = problem if isinstance(problem, MamError) else None
                self._see(False, str(said or explained(problem, self._place)))
                self._began.set()
                self._stop.wait(paced_retry(pause))
                pause = min(2 * pause, _LONGEST_PAUSE_SEC)

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
        self._note({job_id for job_id, by in changed.items() if self._known.get(job_id) != by})
        self._known = changed
