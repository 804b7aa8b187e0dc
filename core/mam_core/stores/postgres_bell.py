"""The relay's bell in PostgreSQL: a NOTIFY that wakes it, and a lock that says who it is.

The lock lives as long as the relay's connection: lost with it, another host takes over. The
connection asks the server something each second, which is its beat: one that is silent is ended.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from mam_core.errors import StoreError
from mam_core.stores.base import RelaySign
from mam_core.stores.postgres_door import Connection, DatabaseError, explained

_CHANNEL = "'mam_bell_' || current_schema()"
#: Two numbers, so that the lock can be found in the list of all.
_KEY = "7168365, hashtext(current_schema() || ' relay')"  # "mam"
_RING = f"SELECT pg_notify({_CHANNEL}, '')"
#: The holder, and since when its connection has asked nothing; null where we may not see that.
_HOLDER = """SELECT pid, application_name, client_addr::text,
        extract(epoch FROM clock_timestamp() - state_change)::float8
    FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted
    AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = 7168365 AND objsubid = 2
    AND objid = (hashtext(current_schema() || ' relay')::bigint & 4294967295)::oid"""
_TRY = f"SELECT pg_try_advisory_lock({_KEY})".encode()
_BEAT_SEC = 1.0
#: The server ends a connection and frees its lock soon after it was asked to.
_FREED_SEC = 2.0


class PostgresBell:
    """Made anew for each who needs one; the relay keeps a connection to hear it."""

    def __init__(self, connected: Callable[[], Connection], place: str) -> None:
        self._connected = connected
        self._place = place
        self._ear: Connection | None = None
        self._beat_at = 0.0

    def ring(self) -> bool:
        with self._connected() as connection:
            try:
                holder = _holder(connection)
                connection.execute(_RING.encode())
            except DatabaseError as problem:
                raise explained(problem, self._place) from problem
        return holder is not None and not holder.sign.is_quiet

    def relay(self) -> RelaySign | None:
        with self._connected() as connection:
            try:
                holder = _holder(connection)
            except DatabaseError as problem:
                raise explained(problem, self._place) from problem
        return holder.sign if holder else None

    def beat(self) -> bool:
        """The lock is ours as long as its connection is. Raises `StoreError` when that is lost."""
        ear = self._hearing()
        if time.monotonic() - self._beat_at >= _BEAT_SEC:
            self._beat_at = time.monotonic()
            try:
                ear.execute(b"SELECT 1")
            except DatabaseError as problem:
                raise explained(problem, self._place) from problem
        return True

    @contextmanager
    def relaying(self) -> Iterator[bool]:
        ear = self._connected()
        try:
            self._ear = ear if self._holds(ear) else None
            yield self._ear is not None
        finally:
            self._ear = None
            ear.close()

    def _holds(self, ear: Connection) -> bool:
        """Take the lock, if nobody has it, and listen."""
        try:
            if not (_is_given(ear) or _take_over(ear)):
                return False
            name = ear.execute(f"SELECT quote_ident({_CHANNEL})".encode()).fetchone()
            assert name is not None
            ear.execute(f"LISTEN {name[0]}".encode())
        except DatabaseError as problem:
            raise explained(problem, self._place) from problem
        return True

    def lanes(self) -> Mapping[str, bool]:
        """Not known: the relay may be on any host, and a word about its brokers is a courtesy."""
        return {}

    def tell_lanes(self, lanes: Mapping[str, bool]) -> None:
        pass

    def wait(self, timeout: float, others: Mapping[int, int]) -> bool:
        """Raises `StoreError` when the link, and with it the lock, is lost."""
        ear = self._hearing()
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

    def _hearing(self) -> Connection:
        if self._ear is None or self._ear.closed:
            raise StoreError(f"{self._place} was lost: another relay may be at work")
        return self._ear


class _Holder(NamedTuple):
    pid: int
    sign: RelaySign


def _holder(connection: Connection) -> _Holder | None:
    row = connection.execute(_HOLDER.encode()).fetchone()
    if row is None:
        return None
    pid, name, host, silent_sec = row
    who = f"{name or 'a connection'} from {host or 'this host'} (backend {pid})"
    return _Holder(pid, RelaySign(who, silent_sec or 0.0))


def _is_given(ear: Connection) -> bool:
    row = ear.execute(_TRY).fetchone()
    return bool(row and row[0])


def _take_over(ear: Connection) -> bool:
    """From one that is silent, though its connection stands: its process is stopped."""
    holder = _holder(ear)
    if holder is None or not holder.sign.is_silent:
        return False
    ear.execute(f"SELECT pg_terminate_backend({holder.pid:d})".encode())
    deadline = time.monotonic() + _FREED_SEC
    while not _is_given(ear):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
