"""A registry in one SQLite file, for one host: WAL, every commit synced, one transaction a change.

Readers never wait. Writers wait for one another with the same patience as for the
lock of the files store: five seconds without anybody getting on, then a sentence.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from mam_core import registry_marks
from mam_core.disk import Folder
from mam_core.errors import LockTimeout, MamError, RegistryGone, RegistryMissing, StoreError
from mam_core.file_lock import PATIENCE_SEC
from mam_core.stores.mounts import check_local
from mam_core.stores.sql_base import ChangedSince
from mam_core.stores.sql_text import STEPS, Dialect, step
from mam_core.stores.sqlite_talk import SqliteChange, SqliteTalk

if TYPE_CHECKING:
    from mam_core.stores.sqlite_watch import SqliteWatch

#: Says that the file is ours: "mam1".
_APPLICATION = 0x6D616D31
_HEAD = b"SQLite format 3\0"
_SHORTEST_PAUSE_SEC, _LONGEST_PAUSE_SEC = 0.0002, 0.004
#: After so many rows the WAL is brought into the file at once: else the next one pays for it.
_BULK = 1000
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_IO = sqlite3.SQLITE_IOERR
_SENTENCES = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it cannot be written to",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_PERM: "permission denied",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_NOTADB: "it is no SQLite database",
}

_Answer = TypeVar("_Answer")


class SqliteDatabase:
    """The file, and connections to it that are lent to one talk at a time."""

    dialect = Dialect.SQLITE
    at_once = None

    def __init__(self, path: str, *, allow_network: bool = False) -> None:
        self.path = os.path.abspath(path)
        self.place = self.file = self.path
        self._allow_network = allow_network
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._lent: set[sqlite3.Connection] = set()
        self._pid = os.getpid()
        self._identity: tuple[int, int] | None = None
        self._distrust = ""

    def now(self) -> None:
        return None

    def watch(self, changed_since: ChangedSince, wake: Callable[[], None]) -> SqliteWatch:
        from mam_core.stores.sqlite_watch import SqliteWatch

        return SqliteWatch(self.path, changed_since, wake)

    @contextmanager
    def reading(self) -> Iterator[SqliteTalk]:
        with self._lending() as db:
            yield SqliteTalk(self, db)

    @contextmanager
    def writing(self, *, create: bool = False) -> Iterator[SqliteChange]:
        if self._distrust:
            raise StoreError(f"nothing more is written by this process: {self._distrust}")
        with self._lending(create=create) as db:
            change = SqliteChange(self, db)
            self.patiently(db, lambda: db.execute("BEGIN IMMEDIATE"))
            try:
                self._check_present()
                yield change
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
            if change.written >= _BULK:
                # Somebody reads, or writes: then the next bulk, or the last one to leave, does it.
                with suppress(sqlite3.Error):
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Those that are lent are closed when they come back."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._lent.clear()
        for db in idle:
            db.close()

    # -- connections -----------------------------------------------------------------------

    @contextmanager
    def _lending(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        db = self._take(create=create)
        try:
            yield db
        finally:
            with self._lock:
                is_ours = db in self._lent
                self._lent.discard(db)
                if is_ours:
                    self._idle.append(db)
            if not is_ours:
                db.close()

    def _take(self, *, create: bool) -> sqlite3.Connection:
        self._leave_parent()
        there = _identity(self.path)
        if there is None or there != self._identity:
            self.close()  # of a file that is not there any more
        if there is None and self._identity is not None:
            raise RegistryGone(f"{self.path} was removed: nothing was written")
        with self._lock:
            db = self._idle.pop() if self._idle else None
            if db is not None:
                self._lent.add(db)
                return db
        db = self._opened(create=create)
        with self._lock:
            self._lent.add(db)
        return db

    def _leave_parent(self) -> None:
        """A connection does not survive a fork; the parent still uses it, so it is not closed."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._lock = threading.Lock()
            _inherited.append((self._idle, self._lent))
            self._idle, self._lent = [], set()

    def _opened(self, *, create: bool) -> sqlite3.Connection:
        try:
            self._prepare_file(create=create)
        except FileNotFoundError:
            raise RegistryMissing(f"there is no registry at {self.path} yet") from None
        try:
            db = sqlite3.connect(
                self.path, timeout=0, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as problem:
            raise self.explained(problem) from problem
        try:
            self.patiently(db, lambda: db.execute("PRAGMA journal_mode = WAL"))
            db.execute("PRAGMA synchronous = FULL")
            self._bring_up(db, create=create)
        except sqlite3.Error as problem:
            db.close()
            raise self.explained(problem) from problem
        except BaseException:
            db.close()
            raise
        self._identity = _identity(self.path)
        return db

    def _prepare_file(self, *, create: bool) -> None:
        """0600 before anything is in it, and never through a link; SQLite would follow one."""
        name = os.path.basename(self.path)
        with Folder.open(os.path.dirname(self.path), create=create) as folder:
            if not self._allow_network:
                check_local(folder)
            for each in (name, f"{name}-wal", f"{name}-shm"):
                with suppress(FileNotFoundError):
                    state = os.stat(each, dir_fd=folder.fd, follow_symlinks=False)
                    folder.check_file(state, each)
            if not folder.has(name):
                if not create:
                    raise FileNotFoundError(self.path)
                with suppress(FileExistsError):
                    folder.put_new(name, b"")
                    registry_marks.made_anew(self.path)
                folder.sync()
            _check_head(folder, name)

    def _bring_up(self, db: sqlite3.Connection, *, create: bool) -> None:
        """To our version, one step a transaction: killed in the middle, it has the one before."""
        # Where the last one to write was killed, somebody takes the log up, and all others wait.
        while (version := self.patiently(db, lambda: _number(db, "user_version"))) < len(STEPS):
            if version == 0 and not create and not self.patiently(db, lambda: _has_tables(db)):
                raise RegistryMissing(f"there is no registry at {self.path} yet")
            self.patiently(db, lambda: db.execute("BEGIN IMMEDIATE"))
            try:
                if _number(db, "user_version") == version:  # else somebody was first
                    if version == 0 and _has_tables(db):
                        raise StoreError(f"{self.path} is a database of something else")
                    for statement in step(version, self.dialect).split(";"):
                        if statement.strip():
                            db.execute(statement)
                    db.execute(f"PRAGMA application_id = {_APPLICATION}")
                    db.execute(f"PRAGMA user_version = {version + 1}")
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
        if self.patiently(db, lambda: _number(db, "application_id")) != _APPLICATION:
            raise StoreError(f"{self.path} is a database of something else")
        if version > len(STEPS):
            raise StoreError(f"{self.path} was made by a newer mam: this one leaves it alone")

    def _check_present(self) -> None:
        if _identity(self.path) != self._identity:
            raise RegistryGone(f"{self.path} was removed or replaced: nothing was written")

    # -- waiting and errors ----------------------------------------------------------------

    def patiently(self, db: sqlite3.Connection, act: Callable[[], _Answer]) -> _Answer:
        """Raises `LockTimeout` when the database is busy and nobody gets on for too long."""
        try:
            return act()
        except sqlite3.Error as problem:
            if _code(problem) not in _BUSY:
                raise self.explained(problem) from problem
        pause, seen = _SHORTEST_PAUSE_SEC, None
        deadline = time.monotonic() + PATIENCE_SEC
        while True:
            time.sleep(random.uniform(pause / 2, pause))
            pause = min(pause * 1.5, _LONGEST_PAUSE_SEC)
            try:
                return act()
            except sqlite3.Error as problem:
                if _code(problem) not in _BUSY:
                    raise self.explained(problem) from problem
            with suppress(sqlite3.Error):
                version = _number(db, "data_version")
                if version != seen:  # others write, one after the other: our turn will come
                    seen, deadline = version, time.monotonic() + PATIENCE_SEC
            if time.monotonic() > deadline:
                raise LockTimeout(
                    f"another process has held {self.path} for {PATIENCE_SEC:g} s: "
                    "it is stopped, or hangs"
                )

    def explained(self, problem: sqlite3.Error) -> MamError:
        code = _code(problem)
        if code == _IO:
            # What the kernel dropped cannot be written again by trying again.
            self._distrust = f"{self.path}: the disk reports an input/output error"
        words = _SENTENCES.get(code, "") or str(problem)
        return StoreError(f"{self.path}: {words}")


#: Connections of the parent process: kept, so that nobody closes them here.
_inherited: list[Any] = []


def _identity(path: str) -> tuple[int, int] | None:
    try:
        state = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise StoreError(f"{path}: {(problem.strerror or str(problem)).lower()}") from None
    return state.st_dev, state.st_ino


#: The files that this process has looked into, by device and inode.
_looked_into: set[tuple[int, int]] = set()
_looking = threading.Lock()


def _check_head(folder: Folder, name: str) -> None:
    """SQLite takes a file of a few bytes for an empty one, and writes over it.

    Looked at once, before this process has a connection to the file: closing any handle of it drops
    the locks of all our connections, and the next command to leave would remove their log.
    """
    with _looking:
        state = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
        if (state.st_dev, state.st_ino) in _looked_into:
            return
        fd, state = folder.open_file(name)
        try:
            if state.st_size and os.read(fd, len(_HEAD)) != _HEAD:
                raise StoreError(f"{folder.path}/{name}: it is no SQLite database")
        finally:
            os.close(fd)
        _looked_into.add((state.st_dev, state.st_ino))


def _number(db: sqlite3.Connection, pragma: str) -> int:
    return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])


def _has_tables(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall())


def _code(problem: sqlite3.Error) -> int:
    """Without its refinements, which stand in the higher bits."""
    return int(getattr(problem, "sqlite_errorcode", 0)) & 0xFF
