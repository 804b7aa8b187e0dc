"""One talk with PostgreSQL: questions, and a transaction that is written in one go.

A transaction begins with its first question, in the same round trip, and ends with all
its changes in another. Audit lines stand behind a savepoint: where they fail, the
changes before it stay, and the lines are tried one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mam_core.audit import warn
from mam_core.errors import StoreError
from mam_core.stores.postgres_door import (
    Connection,
    DatabaseError,
    Duplicate,
    Idle,
    InError,
    explained,
    is_lost,
)
from mam_core.stores.sql_base import Row, Statement, Values
from mam_core.stores.sql_text import Dialect, in_words_of, queries

#: Two who tell of one job at once take the same number: the second one takes the next.
_TRIES = 20
#: So many rows are sent before progress is told.
_CHUNK = 500

#: Woken by every change; each schema has its own.
CHANGES = "'mam_changes_' || current_schema()"
_NOTIFY = f"SELECT pg_notify({CHANGES}, '')".encode()

_HOLD = (
    "SELECT pg_advisory_xact_lock(key) FROM ("
    "SELECT hashtextextended(current_schema() || ' ' || name, 0) AS key "
    "FROM unnest(%s::text[]) AS name ORDER BY key) AS keys"
)

#: Whoever begins a change waits; whoever only reads does not.
_FREEZE = """BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0;
    LOCK TABLE jobs, archive, gates, outbox, histories, history_lines
    IN SHARE ROW EXCLUSIVE MODE"""


class PostgresTalk:
    """Questions, each on its own."""

    def __init__(self, connection: Connection, place: str) -> None:
        self._connection = connection
        self._place = place
        self._queries = queries(Dialect.POSTGRES)

    def ask(self, name: str, **values: Any) -> list[Row]:
        return self._ask(self._queries[name], values)

    def ask_for(self, sql: str, values: Values) -> list[Row]:
        return self._ask(in_words_of(Dialect.POSTGRES, sql), values)

    def _ask(self, sql: str, values: Values) -> list[Row]:
        try:
            return self._connection.execute(sql.encode(), values).fetchall()
        except DatabaseError as problem:
            raise explained(problem, self._place) from problem


class PostgresChange(PostgresTalk):
    """Questions inside of a transaction, then all changes at once."""

    _has_begun = False
    #: psycopg takes statements for prepared that came after the one which failed.
    _is_spoiled = False

    def _ask(self, sql: str, values: Values) -> list[Row]:
        if self._has_begun:
            return super()._ask(sql, values)
        self._has_begun = True
        try:
            with self._connection.pipeline():
                self._connection.execute(b"BEGIN")
                cursor = self._connection.execute(sql.encode(), values)
            return cursor.fetchall()
        except DatabaseError as problem:
            self._is_spoiled = True
            raise explained(problem, self._place) from problem

    def hold(self, names: Sequence[str]) -> None:
        if names:
            self._ask(_HOLD, [list(names)])  # type: ignore[arg-type]  # by place, not by name

    def freeze(self) -> None:
        try:
            self._has_begun = True
            self._connection.execute(_FREEZE.encode())
        except DatabaseError as problem:
            self._is_spoiled = True
            raise explained(problem, self._place) from problem

    def finish(
        self,
        writes: Sequence[Statement],
        asides: Sequence[Statement],
        progress: Callable[[int, int], None] | None = None,
    ) -> bool:
        connection = self._connection
        try:
            with connection.pipeline():
                if not self._has_begun:
                    self._has_begun = True
                    connection.execute(b"BEGIN")
                self._send(writes, progress)
                if asides:
                    connection.execute(b"SAVEPOINT aside")
                    self._send(asides)
                connection.execute(b"COMMIT")
                # Apart, and after it: whoever notifies holds back all others who do until it is
                # on disk. Lost with us, it costs a listener the time to its next look.
                connection.execute(_NOTIFY)
        except DatabaseError as problem:
            return self._finish_without(problem, asides)
        return True

    def leave(self) -> None:
        """What was begun and not finished has not happened."""
        connection = self._connection
        if self._is_spoiled:
            connection.close()
        if connection.closed or connection.info.transaction_status == Idle:
            return
        try:
            connection.execute(b"ROLLBACK")
        except DatabaseError:
            connection.close()

    def _send(
        self,
        statements: Sequence[Statement],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        total = sum(len(one.rows) for one in statements)
        done = 0
        for one in statements:
            sql = self._queries[one.name].encode()
            if len(one.rows) == 1:
                self._connection.execute(sql, one.rows[0])
            else:
                for at in range(0, len(one.rows), _CHUNK):
                    with self._connection.cursor() as cursor:
                        cursor.executemany(sql, one.rows[at : at + _CHUNK])
                    if progress is not None:
                        progress(min(done + at + _CHUNK, done + len(one.rows)), total)
            done += len(one.rows)
            if progress is not None:
                progress(done, total)

    def _finish_without(self, problem: DatabaseError, asides: Sequence[Statement]) -> bool:
        """Something failed: the changes, which is the end of it, or only what was said aside."""
        connection = self._connection
        self._is_spoiled = True
        if is_lost(problem, connection):
            raise StoreError(
                f"{self._place} was lost: whether the last change was made is not known"
            ) from problem
        if connection.info.transaction_status == Idle:
            return True  # it was the notice
        try:
            connection.execute(b"ROLLBACK TO SAVEPOINT aside")
        except DatabaseError:
            raise explained(problem, self._place) from problem
        told = [
            self._say_aside(self._queries[one.name].encode(), row)
            for one in asides
            for row in one.rows
        ]
        try:
            connection.execute(b"COMMIT")
            connection.execute(_NOTIFY)
        except DatabaseError as late:
            raise explained(late, self._place) from late
        return all(told)

    def _say_aside(self, sql: bytes, row: Values) -> bool:
        for _ in range(_TRIES):
            try:
                self._connection.execute(sql, row, prepare=False)
                self._connection.execute(b"SAVEPOINT aside")
            except Duplicate:
                self._connection.execute(b"ROLLBACK TO SAVEPOINT aside")
            except DatabaseError as problem:
                if self._connection.info.transaction_status == InError:
                    self._connection.execute(b"ROLLBACK TO SAVEPOINT aside")
                warn(f"the audit log misses a line: {explained(problem, self._place)}")
                return False
            else:
                return True
        warn(f"the audit log of job {row.get('job_id')} misses a line: too many write to it")
        return False
