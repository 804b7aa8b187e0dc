"""A registry in PostgreSQL, for many hosts: claims skip what others hold, its clock counts for all.

Connections are lent to one talk at a time. One that was lost is made anew by the next
talk; while the server cannot be reached, it is tried again after pauses that grow.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mam_core.errors import RegistryMissing, StoreError
from mam_core.pace import paced_retry
from mam_core.store_urls import StoreUrl
from mam_core.stores.postgres_door import (
    Connection,
    DatabaseError,
    connect,
    explained,
)
from mam_core.stores.postgres_talk import PostgresChange, PostgresTalk
from mam_core.stores.postgres_wire import Wire
from mam_core.stores.sql_base import ChangedSince, Row, Values
from mam_core.stores.sql_text import STEPS, Dialect, step

if TYPE_CHECKING:
    from mam_core.stores.postgres_bell import PostgresBell
    from mam_core.stores.postgres_watch import PostgresWatch

_SHORTEST_PAUSE_SEC, _LONGEST_PAUSE_SEC = 0.1, 5.0
#: The server's clock is asked again after this; between, our own boot clock counts on.
_CLOCK_SEC = 10.0
#: What the server's clock says is not believed when the question took longer: by half of that it
#: may be wrong, and leases are dated by it.
_TRIP_SEC = 2.0
_TRIPS = 3
#: A step to a new version rewrites tables: a server that is at it says nothing meanwhile.
_STEP_SEC = 600.0
_CLOCK = "SELECT extract(epoch FROM clock_timestamp())"
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_VERSION_TABLE = "mam_schema"


class PostgresDatabase:
    """The tables that the connection's search path leads to. Any thread may use it."""

    dialect = Dialect.POSTGRES
    file = None

    def __init__(
        self, url: StoreUrl, password_file: str | None = None, *, shares_clock: bool = True
    ) -> None:
        """`shares_clock`: leases are judged by the server's clock, for all hosts alike."""
        self.place = url.without_password
        self._url = str(url)
        self._password_file = password_file
        self._shares_clock = shares_clock
        self._lock = threading.Lock()
        self._idle: list[Wire] = []
        self._generation = 0
        self._pid = os.getpid()
        self._is_ready = False
        self._pause = 0.0
        self._again_at = 0.0
        self._trouble = ""
        self._offset: tuple[float, float] | None = None

    # -- talks -----------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[PostgresTalk]:
        with self._lending() as wire:
            yield PostgresTalk(wire, self.place)

    @contextmanager
    def writing(self, *, create: bool = False) -> Iterator[PostgresChange]:
        with self._lending(create=create) as wire:
            change = PostgresChange(wire, self.place)
            try:
                yield change
            finally:
                change.leave()

    def at_once(self, sql: str, values: Values) -> list[Row]:
        with self._lending() as wire:
            return PostgresChange(wire, self.place).at_once(sql, values)

    def now(self) -> float | None:
        if not self._shares_clock:
            return None
        ours = time.clock_gettime(_BOOTTIME)
        if self._offset is None or not 0 <= ours - self._offset[0] < _CLOCK_SEC:
            self._offset = self._measured()
            ours = time.clock_gettime(_BOOTTIME)
        return ours + self._offset[1]

    def _measured(self) -> tuple[float, float]:
        """When the server's clock was read, and how far it is ahead of ours.

        A process stopped between question and answer would be wrong by half of that time.
        """
        trip = 0.0
        for _ in range(_TRIPS):
            with self._lending(needs_tables=False) as wire:
                asked = time.clock_gettime(_BOOTTIME)
                ((theirs,),) = wire.ask(_CLOCK)
                ours = time.clock_gettime(_BOOTTIME)
            trip = ours - asked
            if trip <= _TRIP_SEC:
                return ours, float(theirs) - (asked + ours) / 2
        raise StoreError(
            f"{self.place} takes {trip:.0f} s to tell the time: too long to date a lease"
        )

    def watch(self, changed_since: ChangedSince, wake: Callable[[], None]) -> PostgresWatch:
        from mam_core.stores.postgres_watch import PostgresWatch

        return PostgresWatch(self.connected, self.place, changed_since, wake)

    def bell(self) -> PostgresBell:
        from mam_core.stores.postgres_bell import PostgresBell

        return PostgresBell(self.connected, self.place)

    def close(self) -> None:
        """Those that are lent are closed when they come back."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._generation += 1
        for wire in idle:
            wire.close()

    # -- connections -----------------------------------------------------------------------

    def connected(self) -> Connection:
        """A connection of the caller's own. Raises `StoreError` where there is none to be had."""
        if time.monotonic() < self._again_at:
            raise StoreError(self._trouble)
        try:
            made = connect(self._url, self._password_file)
        except DatabaseError as problem:
            self._pause = min(max(2 * self._pause, _SHORTEST_PAUSE_SEC), _LONGEST_PAUSE_SEC)
            self._again_at = time.monotonic() + paced_retry(self._pause)
            failure = explained(problem, self.place)
            self._trouble = failure.message
            raise failure from None  # the cause may hold what was in the url
        self._pause = self._again_at = 0.0
        self._offset = None  # it may be another server
        return made

    @contextmanager
    def _lending(self, *, create: bool = False, needs_tables: bool = True) -> Iterator[Wire]:
        wire, generation = self._take()
        try:
            if needs_tables and not self._is_ready:
                self._bring_up(wire.plain(), create=create)
            yield wire
        except DatabaseError as problem:
            raise explained(problem, self.place) from problem
        except Exception:
            raise
        except BaseException:
            wire.close()  # interrupted between a word and its answer: nobody else is to hear it
            raise
        finally:
            with self._lock:
                keep = generation == self._generation and not wire.closed
                if keep:
                    self._idle.append(wire)
            if not keep:
                wire.close()

    def _take(self) -> tuple[Wire, int]:
        self._leave_parent()
        while True:
            with self._lock:
                generation = self._generation
                if not self._idle:
                    break
                wire = self._idle.pop()
            if wire.is_alive():
                return wire, generation
            wire.close()
        return Wire(self.connected()), generation

    def _leave_parent(self) -> None:
        """A connection does not survive a fork; the parent still uses it, so it is not closed."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._lock = threading.Lock()
            _inherited.append(self._idle)
            self._idle = []

    # -- versions --------------------------------------------------------------------------

    def _bring_up(self, connection: Connection, *, create: bool) -> None:
        """To our version, one step a transaction: killed in the middle, it has the one before."""
        while (version := version_of(connection)) < len(STEPS):
            if version == 0 and not create:
                raise RegistryMissing(f"there is no registry at {self.place} yet")
            with connection.transaction():
                connection.execute(
                    "SELECT pg_advisory_xact_lock("
                    "hashtextextended(current_schema() || ' mam schema', 0))"
                )
                if version_of(connection) != version:
                    continue  # somebody was first
                if version == 0:
                    connection.execute(f"CREATE TABLE {_VERSION_TABLE} (version INTEGER NOT NULL)")
                    connection.execute(f"INSERT INTO {_VERSION_TABLE} VALUES (0)")
                with connection.patient(_STEP_SEC):
                    connection.execute(step(version, self.dialect).encode())
                connection.execute(f"UPDATE {_VERSION_TABLE} SET version = %s", (version + 1,))
        if version > len(STEPS):
            raise StoreError(f"{self.place} was made by a newer mam: this one leaves it alone")
        self._is_ready = True


#: Connections of the parent process: kept, so that nobody closes them here.
_inherited: list[Any] = []


def version_of(connection: Connection) -> int:
    """Of the tables; 0 where there are none.

    Asked of the table of tables: `to_regclass` may not see what was made while we waited.
    """
    there = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = %s"
    if connection.execute(there, (_VERSION_TABLE,)).fetchone() is None:
        return 0
    row = connection.execute(f"SELECT version FROM {_VERSION_TABLE}").fetchone()
    return int(row[0]) if row else 0
