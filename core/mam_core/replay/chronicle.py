"""The entries of all jobs and the acts of all operators, kept in SQLite beside the logs.

Derived, and safe to delete: ``<audit>/.index/history.sqlite`` (its name tells whose
places in histories it keeps) remembers of each log how far it was read, so that opening a
history of a hundred thousand jobs reads what is new and no more. Where it cannot be
written it is made in memory, and forgotten afterwards.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from mam_core.audit_base import Audit, Logs
from mam_core.disk import Folder
from mam_core.errors import MamError
from mam_core.replay.entries import Act, Entry, act_of, first_entry, with_line

FOLDER = ".index"
ENDING = ".sqlite"

#: Raise it with every change of the tables, of `Entry` or of `Act`.
_VERSION = 1
_TABLES = f"""
BEGIN;
DROP TABLE IF EXISTS jobs;
DROP TABLE IF EXISTS acts;
CREATE TABLE jobs (
    job_id TEXT PRIMARY KEY, until INTEGER NOT NULL, changed_at REAL NOT NULL,
    words TEXT NOT NULL, entry TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX newest ON jobs (changed_at DESC, job_id DESC);
CREATE TABLE acts (
    at REAL NOT NULL, job_id TEXT NOT NULL, n INTEGER NOT NULL, verb TEXT NOT NULL,
    by TEXT NOT NULL, words TEXT NOT NULL, UNIQUE (job_id, n, at, verb)
);
CREATE INDEX newest_acts ON acts (at DESC, job_id DESC, n DESC);
PRAGMA user_version = {_VERSION};
COMMIT;
"""
_BUSY_SEC = 5.0
#: So many jobs are one transaction, and one step of the progress.
_JOBS_A_STEP = 200
#: A log longer than this is several transactions.
_LINES_A_STEP = 20_000

#: Below which moment, and among equals below which job (and line).
Place = tuple[float, str, int]


class Chronicle:
    """One connection, for one thread."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self.damaged = 0  #: lines that were passed over since this was opened
        self._db = _opened(audit.path, audit.kept_as + ENDING)

    def close(self) -> None:
        self._db.close()

    def refresh(self, breathe: Callable[[], object] = lambda: None) -> Iterator[tuple[int, int]]:
        """Read what is new; answers how many bytes of how many are done, and may be stopped.

        `breathe` is called after each few milliseconds of work.
        """
        with self._audit.logs() as logs:
            sizes = logs.sizes()
            known = dict(self._db.execute("SELECT job_id, until FROM jobs"))
            self._forget([job_id for job_id in known if known[job_id] > sizes.get(job_id, -1)])
            behind = {
                job_id: known.get(job_id, 0) if known.get(job_id, 0) <= size else 0
                for job_id, size in sizes.items()
                if known.get(job_id) != size
            }
            total = sum(sizes[job_id] - since for job_id, since in behind.items())
            done = pending = 0
            self._db.execute("BEGIN IMMEDIATE")
            try:
                for count, job_id in enumerate(behind, 1):
                    for read, lines in self._read(logs, job_id):
                        done, pending = done + read, pending + lines
                        breathe()
                        if pending >= _LINES_A_STEP or count % _JOBS_A_STEP == 0:
                            pending = 0
                            self._db.execute("COMMIT")
                            yield done, total
                            self._db.execute("BEGIN IMMEDIATE")
            finally:
                if self._db.in_transaction:
                    self._db.execute("COMMIT")  # what was read stays read
        yield total, total

    @property
    def is_kept(self) -> bool:
        """Whether it stands on disk, and the next one who looks has it."""
        return bool(self._db.execute("PRAGMA database_list").fetchone()[2])

    def entries(self, before: Place | None, text: str, limit: int, skip: int = 0) -> list[Entry]:
        """The newest first; each of the words in `text` stands somewhere in an entry."""
        where, values = _having(_JOB_WORDS, text)
        if before is not None:
            where += " AND (changed_at, job_id) < (?, ?)"
            values += before[:2]
        # What is skipped is passed over in the index alone.
        found = self._db.execute(
            f"SELECT entry FROM jobs WHERE job_id IN (SELECT job_id FROM jobs WHERE {where} "
            "ORDER BY changed_at DESC, job_id DESC LIMIT ? OFFSET ?) "
            "ORDER BY changed_at DESC, job_id DESC",
            [*values, limit, skip],
        )
        return [Entry._make(json.loads(entry)) for (entry,) in found]

    def entry(self, job_id: str) -> Entry | None:
        found = self._db.execute("SELECT entry FROM jobs WHERE job_id = ?", (job_id,)).fetchone()
        return Entry._make(json.loads(found[0])) if found else None

    def line_of(self, job_id: str, text: str) -> int | None:
        """How many entries with those words are newer; None: it is not one of them."""
        where, values = _having(_JOB_WORDS, text)
        found = self._db.execute(
            f"SELECT changed_at FROM jobs WHERE job_id = ? AND {where}", [job_id, *values]
        ).fetchone()
        if found is None:
            return None
        where += " AND (changed_at, job_id) > (?, ?)"
        return self._number(f"SELECT count(*) FROM jobs WHERE {where}", *values, *found, job_id)

    def acts(self, before: Place | None, limit: int, text: str = "", skip: int = 0) -> list[Act]:
        where, values = _having(_ACT_WORDS, text)
        if before is not None:
            where += " AND (at, job_id, n) < (?, ?, ?)"
            values += before
        found = self._db.execute(
            f"SELECT at, job_id, n, verb, by, words FROM acts WHERE {where} "
            "ORDER BY at DESC, job_id DESC, n DESC LIMIT ? OFFSET ?",
            [*values, limit, skip],
        )
        return [Act._make(row) for row in found]

    def count(self, text: str = "") -> int:
        where, values = _having(_JOB_WORDS, text)
        return self._number(f"SELECT count(*) FROM jobs WHERE {where}", *values)

    def count_acts(self, text: str = "", after: Place | None = None) -> int:
        """All of them, or those that are newer than `after`."""
        where, values = _having(_ACT_WORDS, text)
        if after is not None:
            where += " AND (at, job_id, n) > (?, ?, ?)"
            values += after
        return self._number(f"SELECT count(*) FROM acts WHERE {where}", *values)

    def _number(self, question: str, *values: Any) -> int:
        return int(self._db.execute(question, values).fetchone()[0])

    def _read(self, logs: Logs, job_id: str) -> Iterator[tuple[int, int]]:
        # Another console may have read on meanwhile: no line is counted twice.
        query = "SELECT until, entry FROM jobs WHERE job_id = ?"
        found = self._db.execute(query, (job_id,)).fetchone()
        if found is not None:
            since, entry = found[0], Entry._make(json.loads(found[1]))
        else:
            since, entry = 0, first_entry(job_id, logs.meta(job_id))
        for piece in logs.pieces(job_id, since):
            acts = []
            for line in piece.lines:
                if (act := act_of(entry, line)) is not None:
                    acts.append(act)
                entry = with_line(entry, line)
            self.damaged += piece.damaged
            self._put(entry, piece.until, acts)
            read, since = piece.until - since, piece.until
            yield read, len(piece.lines)

    def _put(self, entry: Entry, until: int, acts: list[Act]) -> None:
        told = (entry.job_id, entry.status, entry.agent, entry.agent_session, entry.group)
        words = "\n".join(map(str, filter(None, (*told, entry.reason, entry.detail, entry.head))))
        values = entry.job_id, until, entry.changed_at, _storable(words.casefold())
        row = (*values, json.dumps(entry))
        self._db.execute("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?)", row)
        # Another console may have read the same lines: an act is there once.
        self._db.executemany(
            "INSERT OR IGNORE INTO acts VALUES (?, ?, ?, ?, ?, ?)",
            [(*act[:4], _storable(act.by), _storable(act.words)) for act in acts],
        )

    def _forget(self, job_ids: list[str]) -> None:
        """Logs that are gone, or were replaced by shorter ones."""
        for job_id in job_ids:
            for table in ("jobs", "acts"):
                self._db.execute(f"DELETE FROM {table} WHERE job_id = ?", (job_id,))


#: Where words are looked for.
_JOB_WORDS = "words"
_ACT_WORDS = "casefold(verb || char(10) || by || char(10) || job_id || char(10) || words)"


def _having(where: str, text: str) -> tuple[str, list[Any]]:
    """A condition that each of the words fulfils, and its values."""
    words = [_storable(word) for word in text.casefold().split()]
    return " AND ".join(["1", *(f"instr({where}, ?)" for _ in words)]), [*words]


def _storable(text: str) -> str:
    """A lone half of a character has no form in SQLite."""
    return text.encode("utf-8", "backslashreplace").decode()


def _opened(audit_path: str, name: str) -> sqlite3.Connection:
    """On disk where that can be; a damaged one is thrown away and begun anew."""
    try:
        with Folder.open(audit_path) as logs, logs.subfolder(FOLDER, create=True) as home:
            place = os.path.join(home.path, name)
            try:
                _check_plain(home, name)
                return _prepared(place)
            except sqlite3.OperationalError:
                raise  # busy, or read-only: it may be as good as ever
            except sqlite3.DatabaseError:
                for each in _files(name):
                    home.remove(each)
                _check_plain(home, name)
                return _prepared(place)
    except (OSError, MamError, sqlite3.Error):
        return _prepared(":memory:")


def _check_plain(home: Folder, name: str) -> None:
    """SQLite follows links; we do not. Raises `UnsafePath` for anything but files of our own."""
    for each in _files(name):
        with suppress(FileNotFoundError):
            home.check_file(os.stat(each, dir_fd=home.fd, follow_symlinks=False), each)
    with suppress(FileExistsError):
        home.put_new(name, b"")  # so that it is nobody else's to read


def _files(name: str) -> list[str]:
    return [name + suffix for suffix in ("", "-wal", "-shm")]


def _prepared(place: str) -> sqlite3.Connection:
    db = sqlite3.connect(place, timeout=_BUSY_SEC, isolation_level=None, check_same_thread=False)
    try:
        # WAL, so that a look never waits for another console that reads on.
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.create_function("casefold", 1, str.casefold, deterministic=True)
        if db.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
            db.executescript(_TABLES)
        db.execute("SELECT 1 FROM jobs LIMIT 1")
    except sqlite3.Error:
        db.close()
        raise
    return db
