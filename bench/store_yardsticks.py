"""What the databases are measured against: the bare statement, and queues that others use.

Each does less than we do: the bare ones know no rule, no history and no event.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from typing import Any, Protocol

import psycopg

from bench.figures import Wrong

_BARE_TABLE = """
    CREATE TABLE bare (id {key}, label TEXT, status TEXT, body {blob});
    CREATE INDEX bare_pending ON bare (label, id) WHERE status = 'pending'"""
_BARE_CLAIM = """
    UPDATE bare SET status = 'running' WHERE id = (
        SELECT id FROM bare WHERE status = 'pending' AND label = {label} ORDER BY id LIMIT 1{lock})
    RETURNING id, body"""


_END = b"end\n"


class Claims(Protocol):
    """Hands out jobs of a label, each once."""

    def claim(self, label: str) -> str: ...
    def close(self) -> None: ...


class BareSqlite:
    """One ``UPDATE … RETURNING`` a claim, in WAL mode, every commit synced, as ours is."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")

    def fill(self, labels: list[str], count: int, body: bytes) -> None:
        for statement in _BARE_TABLE.format(key="INTEGER PRIMARY KEY", blob="BLOB").split(";"):
            self._db.execute(statement)
        rows = [(labels[n % len(labels)], b"%08d" % n + body[8:]) for n in range(count)]
        self._db.execute("BEGIN")
        sql = "INSERT INTO bare (label, status, body) VALUES (?, 'pending', ?)"
        self._db.executemany(sql, rows)
        self._db.execute("COMMIT")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def claim(self, label: str) -> str:
        rows = self._db.execute(_BARE_CLAIM.format(label="?", lock=""), (label,)).fetchall()
        if not rows:
            raise Wrong(f"no bare row of {label} is left")
        return str(rows[0][0])

    def close(self) -> None:
        self._db.close()


class BarePostgres:
    """The one statement that every queue on PostgreSQL is built around, prepared."""

    def __init__(self, uri: str) -> None:
        self._connection = psycopg.connect(uri, autocommit=True)
        self._sql = _BARE_CLAIM.format(label="%s", lock=" FOR UPDATE SKIP LOCKED").encode()

    def fill(self, labels: list[str], count: int, body: bytes) -> None:
        key = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
        self._connection.execute(_BARE_TABLE.format(key=key, blob="BYTEA").encode())
        copy = b"COPY bare (label, status, body) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(copy) as rows:
            for number in range(count):
                label = labels[number % len(labels)]
                rows.write_row((label, "pending", b"%08d" % number + body[8:]))

    def claim(self, label: str) -> str:
        row = self._connection.execute(self._sql, (label,)).fetchone()
        if row is None:
            raise Wrong(f"no bare row of {label} is left")
        return str(row[0])

    def close(self) -> None:
        self._connection.close()


class Procrastinate:
    """procrastinate 3 at its `fetch_job`, below its workers, with one connection."""

    def __init__(self, uri: str) -> None:
        from procrastinate import App, PsycopgConnector

        self._loop = asyncio.new_event_loop()
        self._app = App(connector=PsycopgConnector(conninfo=uri, min_size=1, max_size=1))
        self._run = self._loop.run_until_complete
        self._run(self._app.open_async())
        self._worker: int | None = None

    def fill(self, uri: str, labels: list[str], count: int, body: bytes) -> None:
        self._run(self._app.schema_manager.apply_schema_async())
        with psycopg.connect(uri, autocommit=True) as connection:
            copy = b"COPY procrastinate_jobs (queue_name, task_name, args, status) FROM STDIN"
            text = body.decode().replace("\n", " ")
            with connection.cursor() as cursor, cursor.copy(copy) as rows:
                for number in range(count):
                    rows.write_row((labels[number % len(labels)], "task", text, "todo"))

    def claim(self, label: str) -> str:
        manager = self._app.job_manager
        if self._worker is None:
            self._worker = self._run(manager.register_worker())
        job = self._run(manager.fetch_job(queues=[label], worker_id=self._worker))
        if job is None:
            raise Wrong(f"no procrastinate job of {label} is left")
        return str(job.id)

    def close(self) -> None:
        self._run(self._app.close_async())
        self._loop.close()


class ClaimCrowd:
    """Forked processes, each with a handle of its own, that claim at the word."""

    def __init__(self, count: int, make: Callable[[], Claims]) -> None:
        self._children: list[tuple[int, int, int]] = []
        for _ in range(count):
            order, go = os.pipe()
            answer, say = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(go)
                os.close(answer)
                for _, theirs, heard in self._children:
                    os.close(theirs)
                    os.close(heard)
                _serve(make, order, say)
            os.close(order)
            os.close(say)
            self._children.append((pid, go, answer))

    def claim(self, label: str, claims: int) -> list[str]:
        for _, go, _ in self._children:
            os.write(go, f"{label} {claims}\n".encode())
        got: list[str] = []
        for _, _, answer in self._children:
            said = b""
            while not said.endswith(b"\n"):
                part = os.read(answer, 65536)
                if not part:
                    raise Wrong("a process that claims has died")
                said += part
            if said.startswith(b"!"):
                raise Wrong(said.decode().strip())
            got += said.decode().split()
        if len(set(got)) != len(got):
            raise Wrong("a job was handed out twice")
        return got

    def close(self) -> None:
        for pid, go, answer in self._children:
            os.write(go, _END)  # a closed pipe would not do: other crowds have its end, too
            os.waitpid(pid, 0)
            os.close(go)
            os.close(answer)


def _serve(make: Callable[[], Claims], order: int, say: int) -> None:
    try:
        side: Any = make()
        with os.fdopen(order) as orders:
            for line in iter(orders.readline, _END.decode()):
                label, count = line.split()
                got = [side.claim(label) for _ in range(int(count))]
                os.write(say, (" ".join(got) + "\n").encode())
        side.close()
    except BaseException as problem:
        os.write(say, f"!{type(problem).__name__}: {problem}".replace("\n", " ").encode() + b"\n")
    finally:
        os._exit(0)
