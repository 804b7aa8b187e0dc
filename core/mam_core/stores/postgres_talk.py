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
from mam_core.stores.postgres_door import DatabaseError, Duplicate, explained, is_lost
from mam_core.stores.postgres_wire import Wire
from mam_core.stores.sql_base import Row, Statement, Values
from mam_core.stores.sql_text import Dialect, queries

#: Two who tell of one job at once take the same number: the second one takes the next.
_TRIES = 20
#: So many rows are sent before their answers are heard, and progress is told.
_CHUNK = 500

#: Woken by every change; each schema has its own.
CHANGES = "'mam_changes_' || current_schema()"
_NOTIFY = f"SELECT pg_notify({CHANGES}, '')"

_HOLD = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' ' || :name, 0))"

#: Whoever begins a change waits; whoever only reads does not.
_FREEZE = (
    "SET LOCAL idle_in_transaction_session_timeout = 0",
    "LOCK TABLE jobs, archive, gates, papers, outbox, histories, history_lines"
    " IN SHARE ROW EXCLUSIVE MODE",
)


class PostgresTalk:
    """Questions, each on its own."""

    def __init__(self, wire: Wire, place: str) -> None:
        self._wire = wire
        self._place = place
        self._queries = queries(Dialect.POSTGRES)

    def ask(self, name: str, **values: Any) -> list[Row]:
        return self.ask_for(self._queries[name], values)

    def ask_for(self, sql: str, values: Values) -> list[Row]:
        self._wire.say(sql, values)
        return self._hear()

    def _hear(self) -> list[Row]:
        try:
            return self._wire.hear()
        except DatabaseError as problem:
            raise explained(problem, self._place) from problem


class PostgresChange(PostgresTalk):
    """Questions inside of a transaction, then all changes at once."""

    _has_begun = False
    _is_over = False

    def ask_for(self, sql: str, values: Values) -> list[Row]:
        self._begin()
        return super().ask_for(sql, values)

    def hold(self, names: Sequence[str]) -> None:
        """In one order, so that no two wait for each other."""
        if names:
            self._begin()
            for name in sorted(names):
                self._wire.say(_HOLD, {"name": name})
            self._hear()

    def freeze(self) -> None:
        self._begin()
        for sql in _FREEZE:
            self._wire.say(sql)
        self._hear()

    def finish(
        self,
        writes: Sequence[Statement],
        asides: Sequence[Statement],
        progress: Callable[[int, int], None] | None = None,
    ) -> bool:
        try:
            self._begin()
            self._send(writes, progress)
            if asides:
                self._wire.say("SAVEPOINT aside")
                self._send(asides)
            self._commit()
        except DatabaseError as problem:
            return self._finish_without(problem, asides)
        return True

    def at_once(self, sql: str, values: Values) -> list[Row]:
        """One statement is a transaction by itself, in one round trip."""
        self._wire.say(sql, values)
        try:
            return self._wire.hear(then=_NOTIFY)
        except DatabaseError as problem:
            self._give_up_if_lost(problem)
            return []

    def leave(self) -> None:
        """What was begun and not finished has not happened."""
        if not self._has_begun or self._is_over or self._wire.closed:
            return
        try:
            self._wire.ask("ROLLBACK")
        except DatabaseError:
            self._wire.close()

    def _begin(self) -> None:
        """In the same round trip as what comes next."""
        if not self._has_begun:
            self._has_begun = True
            self._wire.say("BEGIN")

    def _commit(self) -> None:
        self._wire.say("COMMIT")
        # The notice is apart, and after it: whoever notifies holds back all others who do until
        # it is on disk. Lost with us, it costs a listener the time to its next look.
        self._wire.hear(then=_NOTIFY)
        self._is_over = True

    def _send(
        self,
        statements: Sequence[Statement],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        total = sum(len(one.rows) for one in statements)
        done = 0
        for one in statements:
            sql = self._queries[one.name]
            for row in one.rows:
                self._wire.say(sql, row)
                done += 1
                if done % _CHUNK == 0:
                    self._wire.hear()
                    if progress is not None:
                        progress(done, total)
        if progress is not None:
            progress(done, total)

    def _finish_without(self, problem: DatabaseError, asides: Sequence[Statement]) -> bool:
        """Something failed: the changes, which is the end of it, or only what was said aside."""
        self._give_up_if_lost(problem)
        try:
            self._wire.ask("ROLLBACK TO SAVEPOINT aside")
        except DatabaseError:
            raise explained(problem, self._place) from problem
        told = [self._say_aside(self._queries[one.name], row) for one in asides for row in one.rows]
        try:
            self._commit()
        except DatabaseError as late:
            raise explained(late, self._place) from late
        return all(told)

    def _say_aside(self, sql: str, row: Values) -> bool:
        for _ in range(_TRIES):
            try:
                self._wire.say(sql, row)
                self._wire.ask("SAVEPOINT aside")
            except Duplicate:
                self._wire.ask("ROLLBACK TO SAVEPOINT aside")
            except DatabaseError as problem:
                if not self._is_lost(problem):
                    self._wire.ask("ROLLBACK TO SAVEPOINT aside")
                warn(f"the audit log misses a line: {explained(problem, self._place)}")
                return False
            else:
                return True
        warn(f"the audit log of job {row.get('job_id')} misses a line: too many write to it")
        return False

    def _give_up_if_lost(self, problem: DatabaseError) -> None:
        if self._is_lost(problem):
            raise StoreError(
                f"{self._place} was lost: whether the last change was made is not known"
            ) from problem

    def _is_lost(self, problem: DatabaseError) -> bool:
        return self._wire.closed or is_lost(problem)
