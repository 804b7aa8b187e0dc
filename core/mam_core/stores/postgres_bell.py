"""The relay's bell in PostgreSQL: a NOTIFY that wakes it, and a lock that says who it is.

The lock lives as long as the relay's connection: lost with it, another host takes over.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from mam_core.errors import StoreError
from mam_core.stores.postgres_door import Connection, DatabaseError, explained

_CHANNEL = "'mam_bell_' || current_schema()"
#: Two numbers, so that the lock can be found in the list of all.
_KEY = "7168365, hashtext(current_schema() || ' relay')"  # "mam"
_RING = f"SELECT pg_notify({_CHANNEL}, '')"
_IS_HELD = """SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = 7168365 AND objsubid = 2
    AND objid = (hashtext(current_schema() || ' relay')::bigint & 4294967295)::oid)"""


class PostgresBell:
    """Made anew for each who needs one; the relay keeps a connection to hear it."""

    def __init__(self, connected: Callable[[], Connection], place: str) -> None:
        self._connected = connected
        self._place = place
        self._ear: Connection | None = None

    def ring(self) -> bool:
        with self._connected() as connection:
            try:
                row = connection.execute(_IS_HELD).fetchone()
                connection.execute(_RING.encode())
            except DatabaseError as problem:
                raise explained(problem, self._place) from problem
        return bool(row and row[0])

    @contextmanager
    def relaying(self) -> Iterator[bool]:
        ear = self._connected()
        try:
            row = ear.execute(f"SELECT pg_try_advisory_lock({_KEY})".encode()).fetchone()
            if not (row and row[0]):
                yield False
                return
            name = ear.execute(f"SELECT quote_ident({_CHANNEL})".encode()).fetchone()
            assert name is not None
            ear.execute(f"LISTEN {name[0]}".encode())
            self._ear = ear
            yield True
        finally:
            self._ear = None
            ear.close()

    def lanes(self) -> Mapping[str, bool]:
        """Not known: the relay may be on any host, and a word about its brokers is a courtesy."""
        return {}

    def tell_lanes(self, lanes: Mapping[str, bool]) -> None:
        pass

    def wait(self, timeout: float, others: Mapping[int, int]) -> bool:
        """Raises `StoreError` when the link, and with it the lock, is lost."""
        ear = self._ear
        if ear is None or ear.closed:
            raise StoreError(f"{self._place} was lost: another relay may be at work")
        poll = select.poll()
        poll.register(ear.fileno(), select.POLLIN)
        for fd, events in others.items():
            poll.register(fd, events)
        if not any(fd == ear.fileno() for fd, _ in poll.poll(timeout * 1000)):
            return False
        try:
            return bool(list(ear.notifies(timeout=0)))
        except DatabaseError as problem:
            raise explained(problem, self._place) from problem
