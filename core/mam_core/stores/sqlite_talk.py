"""One talk with a SQLite file: questions, and the one transaction that writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from mam_core.audit import warn
from mam_core.errors import MamError
from mam_core.stores.sql_base import Row, Statement, Values
from mam_core.stores.sql_text import Dialect, queries

_Answer = TypeVar("_Answer")


class File(Protocol):
    """What a talk asks of the database that it is with."""

    def patiently(self, db: sqlite3.Connection, act: Callable[[], _Answer]) -> _Answer: ...
    def explained(self, problem: sqlite3.Error) -> MamError: ...


class SqliteTalk:
    """Questions on one connection."""

    def __init__(self, file: File, db: sqlite3.Connection) -> None:
        self._file = file
        self._db = db
        self._queries = queries(Dialect.SQLITE)

    def ask(self, name: str, **values: Any) -> list[Row]:
        return self.ask_for(self._queries[name], values)

    def ask_for(self, sql: str, values: Values) -> list[Row]:
        return self._file.patiently(self._db, lambda: self._db.execute(sql, values).fetchall())


class SqliteChange(SqliteTalk):
    """The one transaction that writes: nobody else does until it ends."""

    written = 0
    _number = 0
    _step: Callable[[], None] | None = None

    def hold(self, names: Sequence[str]) -> None:
        """We hold everything."""

    def freeze(self) -> None:
        """We hold everything."""

    def finish(
        self,
        writes: Sequence[Statement],
        asides: Sequence[Statement],
        progress: Callable[[int, int], None] | None = None,
    ) -> bool:
        self._number = int(self.ask("change_number")[0][0]) + 1
        if progress is not None:
            total = sum(len(one.rows) for one in (*writes, *asides))
            self._step = lambda: progress(self.written, total)
        try:
            for one in writes:
                self._write(one)
            told = [self._write_aside(one) for one in asides]
            self._db.execute("COMMIT")
        except sqlite3.Error as problem:
            raise self._file.explained(problem) from problem
        return all(told)

    def _write_aside(self, statement: Statement) -> bool:
        """A statement that fails has done nothing, and the transaction goes on: SQLite's own
        savepoint. Where it cannot go on, the commit says so."""
        try:
            self._write(statement)
        except sqlite3.Error as problem:
            warn(f"the audit log misses a line: {self._file.explained(problem)}")
            return False
        return True

    def _write(self, statement: Statement) -> None:
        sql = self._queries[statement.name]
        for row in statement.rows:
            self._db.execute(sql, {**row, "changed": self._number})
            self.written += 1
            if self._step is not None:
                self._step()
