"""A connection as libpq has it: statements prepared once, sent together, answered together.

psycopg's cursors are made for any program, and a claim of seven statements spent three
quarters of its time in them. Here a statement costs two calls into C, and a transaction
two round trips. What psycopg knows (connecting, types, errors) is left to it.
"""

from __future__ import annotations

import select
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mam_core.stores.postgres_door import (
    BYTEA,
    IN_BINARY,
    IN_TEXT,
    Connection,
    DatabaseError,
    DataProblem,
    LinkProblem,
    NoAnswer,
    Outcome,
    Result,
    Transformer,
    problem_in,
)
from mam_core.stores.sql_base import Row, Values
from mam_core.stores.sql_text import numbered

#: So many statements stay prepared; one more is prepared anew each time.
_KEPT = 200
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Wire:
    """Serves one talk at a time. An answer that nobody waits for is heard by the next one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._rows = Transformer(connection)
        self._names: dict[bytes, bytes] = {}
        self._prepared = 0
        self._unheard = 0
        self._poll = select.poll()

    # -- talking ---------------------------------------------------------------------------

    def say(self, sql: str, values: Values = _NOTHING) -> None:
        """Put it to what is sent with the next `hear`."""
        pgconn = self._pgconn
        if not pgconn.pipeline_status:
            pgconn.enter_pipeline_mode()
        text, places = numbered(sql)
        given = [_dumped(values[place]) for place in places]
        formats = [IN_BINARY if isinstance(values[place], bytes) else IN_TEXT for place in places]
        name = self._names.get(text)
        if name is None:
            name = b""
            if len(self._names) < _KEPT:
                self._prepared += 1
                name = self._names[text] = b"mam_%d" % self._prepared
            types = [BYTEA if each is IN_BINARY else 0 for each in formats]
            pgconn.send_prepare(name, text, types)
        pgconn.send_query_prepared(name, given, formats, IN_BINARY)

    def hear(self, then: str = "") -> list[Row]:
        """What the last statement answers; the problem of the first that failed, else.

        `then` is sent along and not waited for: how it went is heard with the next answer, and
        matters to nobody.
        """
        self._mark()
        waited_for = self._unheard
        if then:
            self.say(then)
            self._mark()
        while self._pgconn.flush():
            self._wait(select.POLLIN | select.POLLOUT)
        for _ in range(waited_for - 1):
            self._answers()
        results, problem = self._answers()
        if problem is not None:
            raise problem
        if not results or results[-1].status != Outcome.TUPLES_OK:
            return []
        self._rows.set_pgresult(results[-1])
        rows: list[Row] = self._rows.load_rows(0, results[-1].ntuples, tuple)
        return rows

    def ask(self, sql: str, values: Values = _NOTHING) -> list[Row]:
        self.say(sql, values)
        return self.hear()

    # -- as a connection -------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        return self._connection.closed

    def plain(self) -> Connection:
        """The connection in psycopg's own way, until the next word is said here."""
        while self._unheard:
            self._answers()
        if self._pgconn.pipeline_status:
            self._pgconn.exit_pipeline_mode()
        return self._connection

    def is_alive(self) -> bool:
        """What a server that ended has left behind is seen without asking it."""
        if self.closed:
            return False
        try:
            while self._unheard:
                self._answers()
            self._poll.register(self._pgconn.socket, select.POLLIN)
            while self._poll.poll(0):  # something that nobody asked for: a notice, or the end
                self._pgconn.consume_input()
        except (DatabaseError, OSError, ValueError):
            return False
        return not self.closed

    def close(self) -> None:
        self._connection.close()

    # -- the wire itself -------------------------------------------------------------------

    def _mark(self) -> None:
        """What fails before a mark makes the server skip all up to it."""
        self._pgconn.pipeline_sync()
        self._unheard += 1

    def _answers(self) -> tuple[list[Result], DatabaseError | None]:
        """Up to the next mark."""
        results: list[Result] = []
        problem: DatabaseError | None = None
        while True:
            while self._pgconn.is_busy():
                self._wait(select.POLLIN)
            result = self._pgconn.get_result()
            if result is None:
                if self._connection.closed:
                    raise problem or LinkProblem("the connection was lost")
            elif result.status == Outcome.PIPELINE_SYNC:
                self._unheard -= 1
                if problem is not None:
                    self._names.clear()  # what came after it was skipped, and prepared nothing
                return results, problem
            elif result.status in (Outcome.FATAL_ERROR, Outcome.PIPELINE_ABORTED):
                problem = problem or problem_in(result, self._connection)
            else:
                results.append(result)

    def _wait(self, events: int) -> None:
        self._poll.register(self._pgconn.socket, events)
        patience_sec = self._connection.answer_sec
        came = self._poll.poll(patience_sec * 1000)
        if not came:
            self.close()
            raise NoAnswer(patience_sec)
        if any(seen & ~select.POLLOUT for _, seen in came):
            self._pgconn.consume_input()


def _dumped(value: Any) -> bytes | None:
    match value:
        case None | bytes():
            return value
        case str():
            if "\0" in value:
                raise DataProblem("a text for PostgreSQL cannot hold a zero byte")
            return value.encode()
        case bool():
            return b"t" if value else b"f"
        case _:
            return str(value).encode()
