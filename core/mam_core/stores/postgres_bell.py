"""The relay's bell in PostgreSQL: a NOTIFY that wakes it, and a lock that says who it is.

The lock lives as long as the relay's connection: lost with it, another host takes over. Each
second the relay writes the server's time into the name of its connection, which is its beat and
can be read by every login. The place of one that is silent is taken by the next in a row of locks,
of which the last counts: nobody needs the right to end the connection of another login.
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
#: Two numbers, so that the locks can be found in the list of all; the first counts the takeovers.
_FIRST, _LAST = 7168365, 7168365 + 999  # "mam"
_PLACE = "hashtext(current_schema() || ' relay')"
_RING = f"SELECT pg_notify({_CHANNEL}, '')"
#: The holder, and how long it has been silent. The host of another login is hidden from us.
_HOLDER = rf"""SELECT pid, classid::bigint, usename, client_addr::text, state_change IS NULL,
        regexp_replace(application_name, ' beat [0-9.]+$', ''),
        extract(epoch FROM clock_timestamp())::float8
            - substring(application_name FROM ' beat ([0-9.]+)$')::float8
    FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted
    AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint BETWEEN {_FIRST} AND {_LAST} AND objsubid = 2
    AND objid = ({_PLACE}::bigint & 4294967295)::oid ORDER BY classid::bigint DESC LIMIT 1"""
#: A name has room for 63 bytes.
_BEAT = r"""SELECT pg_backend_pid(), set_config('application_name',
    left(regexp_replace(current_setting('application_name'), ' beat [0-9.]+$', ''), 40)
    || ' beat ' || round(extract(epoch FROM clock_timestamp())::numeric, 3), false)"""
_BEAT_SEC = 1.0


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
        """The lock is ours as long as its connection is, and nobody has the next one. Raises
        `StoreError` when the connection is lost."""
        ear = self._hearing()
        if time.monotonic() - self._beat_at < _BEAT_SEC:
            return True
        try:
            pid = _show_beat(ear)
            holder = _holder(ear)
        except DatabaseError as problem:
            raise explained(problem, self._place) from problem
        if holder is None or holder.pid != pid:
            return False
        self._beat_at = time.monotonic()
        return True

    @contextmanager
    def relaying(self) -> Iterator[bool]:
        ear = self._connected()
        try:
            self._beat_at = 0.0
            self._ear = ear if self._holds(ear) else None
            yield self._ear is not None
        finally:
            self._ear = None
            ear.close()

    def _holds(self, ear: Connection) -> bool:
        """Take the lock, unless a relay that still beats has it, and listen."""
        try:
            _show_beat(ear)
            if not _is_given(ear):
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
    lock: int
    sign: RelaySign


def _holder(connection: Connection) -> _Holder | None:
    row = connection.execute(_HOLDER.encode()).fetchone()
    if row is None:
        return None
    pid, lock, login, host, is_hidden, name, silent_sec = row
    where = f"login {login}" if is_hidden else f"from {host or 'this host'}"
    who = f"{name or 'a connection'}, {where} (backend {pid})"
    return _Holder(pid, lock, RelaySign(who, silent_sec or 0.0))


def _show_beat(ear: Connection) -> int:
    """Write the beat; returns the pid of our backend."""
    row = ear.execute(_BEAT.encode()).fetchone()
    assert row is not None
    return int(row[0])


def _is_given(ear: Connection) -> bool:
    """Whether we have the lock now. Two relays that start at once try the same one."""
    holder = _holder(ear)
    if holder is not None and not holder.sign.is_silent:
        return False
    lock = _FIRST if holder is None else holder.lock + 1
    if lock > _LAST:
        return False
    row = ear.execute(f"SELECT pg_try_advisory_lock({lock:d}, {_PLACE})".encode()).fetchone()
    return bool(row and row[0])
