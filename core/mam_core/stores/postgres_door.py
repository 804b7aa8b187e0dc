"""The one door to psycopg: how a connection is made, and what its errors mean to a person.

A cut link is noticed in seconds, by keepalives and by what stays unacknowledged; one that
stands while nothing answers any more, as behind a pooler that hangs, by the silence. A
password comes from the url, a file of its own, or whatever libpq itself looks at
(PGPASSWORD, PGPASSFILE, a service); no sentence of ours ever holds one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.adapt import Transformer as Transformer
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from mam_core.disk import Folder
from mam_core.errors import ConfigError, LockTimeout, MamError, RegistryGone, StoreError

DatabaseError = psycopg.Error
DataProblem = psycopg.DataError
LinkProblem = psycopg.OperationalError
Duplicate = errors.UniqueViolation
Outcome = ExecStatus
Result = PGresult

IN_TEXT, IN_BINARY = Format.TEXT, Format.BINARY
BYTEA = 17  #: the number of that type in every PostgreSQL

#: How long to wait for a row or a name that somebody else holds.
PATIENCE_MS = 5000
#: A process that was stopped in the middle of a transaction is not waited for longer than this.
_IDLE_IN_TRANSACTION_MS = 60_000

#: So long a silence in the middle of an answer means that none will come. Longer than a wait for
#: a row may be, and well below the part of the usual lease that its holder may use.
ANSWER_SEC = 10.0

_LINK = {
    "connect_timeout": "3",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "4000",
    "application_name": "mam",
}


_Answer = TypeVar("_Answer")


class NoAnswer(LinkProblem):
    """The server was asked, and said nothing for too long; the connection is closed."""

    def __init__(self, sec: float) -> None:
        super().__init__(f"no answer for {sec:g} s")


class Connection(psycopg.Connection[Any]):
    """One that waits for an answer, but not for ever."""

    answer_sec = ANSWER_SEC

    def wait(self, gen: PQGen[_Answer], *args: Any, **given: Any) -> _Answer:
        try:
            return super().wait(_answered(gen, self.answer_sec), *args, **given)
        except NoAnswer:
            self.close()
            raise

    @contextmanager
    def patient(self, sec: float) -> Iterator[None]:
        """For statements that are known to take long."""
        before, self.answer_sec = self.answer_sec, sec
        try:
            yield
        finally:
            self.answer_sec = before


def _answered(gen: PQGen[_Answer], patience_sec: float) -> PQGen[_Answer]:
    """The same talk; whoever drives it says again and again that nothing came meanwhile."""
    heard = time.monotonic()
    try:
        wanted = next(gen)
        while True:
            came = yield wanted
            if came:
                heard = time.monotonic()
            elif time.monotonic() - heard > patience_sec:
                raise NoAnswer(patience_sec)
            wanted = gen.send(came)
    except StopIteration as end:
        answer: _Answer = end.value
        return answer


def connect(url: str, password_file: str | None = None) -> Connection:
    """A connection that commits by itself unless it is told to begin; `DatabaseError` if none."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise ConfigError("the url of the store is malformed (it is not shown here)") from None
    wanted: dict[str, Any] = {**_LINK, **given}
    if password_file is not None and "password" not in given:
        wanted["password"] = _password(password_file)
    made = Connection.connect(**wanted, autocommit=True)
    try:
        made.execute(
            f"SET lock_timeout = {PATIENCE_MS}; "
            f"SET idle_in_transaction_session_timeout = {_IDLE_IN_TRANSACTION_MS}; "
            "SET client_encoding = 'UTF8'"
        )
    except BaseException:
        made.close()
        raise
    return made


def _password(path: str) -> str:
    """A file of ours that nobody else may read."""
    folder, name = os.path.split(os.path.abspath(path))
    try:
        with Folder.open(folder) as home:
            data, state = home.read(name, 4096)
    except OSError as problem:
        raise ConfigError(f"{path}: {(problem.strerror or str(problem)).lower()}") from None
    if state.st_mode & 0o077:
        raise ConfigError(f"{path} can be read by other users: chmod 600 it")
    return data.decode("utf-8", "replace").rstrip("\r\n")


def problem_in(result: Result, connection: Connection) -> DatabaseError:
    """What went wrong with one statement, as psycopg says it."""
    return errors.error_from_result(result, connection.info.encoding)


def is_lost(problem: Exception, connection: Connection | None = None) -> bool:
    """The link or the server is gone, as opposed to a statement that it refused."""
    if connection is not None and (connection.closed or connection.broken):
        return True
    return isinstance(problem, psycopg.OperationalError) and problem.sqlstate is None


def explained(problem: Exception, place: str) -> MamError:
    """What the database said, as one of our errors."""
    match problem:
        case errors.LockNotAvailable():
            return LockTimeout(
                f"another process has held what is needed in {place} for {PATIENCE_MS // 1000} s: "
                "it is stopped, or hangs"
            )
        case errors.DeadlockDetected():
            return LockTimeout(f"{place}: two changes stood in each other's way; try it again")
        case errors.UndefinedTable() | errors.InvalidSchemaName():
            return RegistryGone(f"the tables of {place} were removed: nothing was written")
        case errors.InsufficientPrivilege():
            return StoreError(f"{place}: permission denied: {_words(problem)}")
        case errors.DiskFull():
            return StoreError(f"{place}: the disk of the database is full")
        case psycopg.OperationalError() if problem.sqlstate is None:
            return StoreError(f"{place} cannot be reached: {_words(problem)}")
        case _:
            return StoreError(f"{place}: {_words(problem)}")


def _words(problem: Exception) -> str:
    """The first line that says something; libpq repeats itself for each address it tried."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0] if lines else type(problem).__name__
