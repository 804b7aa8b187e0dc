"""The one door to psycopg: how a connection is made, and what its errors mean to a person.

A cut link is noticed in seconds, by keepalives and by what stays unacknowledged. A
password comes from the url, a file of its own, or whatever libpq itself looks at
(PGPASSWORD, PGPASSFILE, a service); no sentence of ours ever holds one.
"""

from __future__ import annotations

import os
from typing import Any

import psycopg
from psycopg import errors
from psycopg.adapt import Transformer as Transformer
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from mam_core.disk import Folder
from mam_core.errors import ConfigError, LockTimeout, MamError, RegistryGone, StoreError

Connection = psycopg.Connection[Any]
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

_LINK = {
    "connect_timeout": "3",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "4000",
    "application_name": "mam",
}


def connect(url: str, password_file: str | None = None) -> Connection:
    """A connection that commits by itself unless it is told to begin; `DatabaseError` if none."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise ConfigError("the url of the store is malformed (it is not shown here)") from None
    wanted: dict[str, Any] = {**_LINK, **given}
    if password_file is not None and "password" not in given:
        wanted["password"] = _password(password_file)
    made = psycopg.connect(**wanted, autocommit=True)
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
