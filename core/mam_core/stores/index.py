"""The index: the folder's records in SQLite, so that no question has to read them all.

The files stay the truth. The index lives in ``.index/``, is rebuilt when it is
missing, damaged, of another version, another folder or another boot, and is
believed only while the folder bears its seal. Deleting it is always safe.
Nothing in it is synced: kill -9 does not take the page cache, and what a power
cut leaves is not trusted.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import NamedTuple

from mam_core.clock import Clock, SystemClock
from mam_core.disk import Folder
from mam_core.errors import MamError, StoreError
from mam_core.stores import seal
from mam_core.stores.catalogue import (
    RECORD_SUFFIX,
    Answers,
    ScanAnswers,
    Sight,
    Written,
    encodable,
    is_record_name,
    read_job,
)
from mam_core.stores.index_answers import IndexAnswers
from mam_core.stores.index_rows import (
    BROKEN_INDEX,
    State,
    file_mark,
    remove_rows,
    write_rows,
    write_unreadable,
)
from mam_core.stores.index_sight import IndexSight
from mam_core.summaries import Unreadable

INDEX_FOLDER = ".index"
INDEX_NAME = "jobs.sqlite"

#: Raise it with every change of ``index.sql`` or of what a row holds.
VERSION = 5

#: Looking at every file for changes in place may take this share of the time, and no more.
_LOOK_SHARE = 0.01
_LOOK_EVERY_SEC = 5.0

#: Nobody but us writes here, under the registry's lock; a stranger who does is not waited for long.
_BUSY_SEC = 0.5

#: The version, folder and boot that an index was made for.
MadeFor = tuple[int, str, str]


class _Held(NamedTuple):
    """A connection, and the file that it is to."""

    db: sqlite3.Connection
    identity: tuple[int, int] | None


class Index:
    """A catalogue in SQLite. Each thread has a connection of its own; all are closed together."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        #: By process, too: after a fork the parent still uses its own, so they are not closed.
        self._held: dict[tuple[int, threading.Thread], _Held] = {}

    # -- the catalogue protocol ------------------------------------------------------------

    def current(self, folder: Folder) -> Answers | None:
        try:
            db = self.connection(folder)
            if db is not None and self.is_current(folder, State.of(db)):
                return IndexAnswers(db, folder)
        except BROKEN_INDEX:
            pass
        return None

    def latest(self, folder: Folder) -> Answers:
        try:
            db = self.connection(folder)
            # One that nobody has filled yet is not an empty registry.
            if db is not None and State.of(db).looked_at > 0:
                return IndexAnswers(db, folder)
        except BROKEN_INDEX:
            pass
        return ScanAnswers(folder)

    def sight(self, folder: Folder, alive: Callable[[], None]) -> Sight:
        return IndexSight(self, folder, alive)

    def close(self) -> None:
        self._let_go(lambda _: True)

    # -- for the holder of the lock --------------------------------------------------------

    def is_current(self, folder: Folder, state: State) -> bool:
        since = self._clock.since_boot() - state.looked_at
        due = max(_LOOK_EVERY_SEC, state.look_took / _LOOK_SHARE)
        return bool(state.seal == seal.seal_of(folder) and 0 <= since < due)

    def catch_up(self, folder: Folder, alive: Callable[[], None]) -> None:
        try:
            self._look(folder, alive)
        except BROKEN_INDEX:
            self.throw_away(folder)
            with suppress(*BROKEN_INDEX):  # then there is no index, and every answer is a scan
                self._look(folder, alive)

    # -- looking at the folder -------------------------------------------------------------

    def _look(self, folder: Folder, alive: Callable[[], None]) -> None:
        """Compare every file with its row, read those that differ, and seal the folder.

        Sealed before it is read: a change meanwhile breaks the seal again.
        """
        db = self.connection(folder, make=True)
        assert db is not None
        began = time.perf_counter()
        fine = State.of(db).fine
        kept = seal.seal_of(folder) if fine else seal.set_seal(folder, seal.new_seal())
        known = {row[0]: row[1:] for row in db.execute(_ALL_FILES)}
        written: list[Written] = []
        unreadable: list[tuple[Unreadable, os.stat_result]] = []
        for stem, state in _files(folder):
            alive()
            # A name that is no text is kept as its escape, like every text that SQLite refuses.
            row = known.pop(encodable(stem), None)
            # What is readable has the date of its content there, what is not that of its rights.
            if row in _dates(state):
                continue
            try:
                written.append(Written(*read_job(folder, stem)))
            except FileNotFoundError:
                continue
            except (MamError, OSError) as problem:
                unreadable.append((Unreadable(encodable(stem), str(problem)), state))
        with _transaction(db):
            remove_rows(db, [*known, *(bad.job_id for bad, _ in unreadable)])
            write_rows(db, written)
            write_unreadable(db, unreadable)
            took = time.perf_counter() - began
            values = (kept, self._clock.since_boot(), took)
            db.execute("UPDATE state SET seal = ?, looked_at = ?, look_took = ?", values)

    # -- the file --------------------------------------------------------------------------

    def connection(self, folder: Folder, *, make: bool = False) -> sqlite3.Connection | None:
        """This thread's connection to the index of `folder`; None when there is none to use."""
        me = (os.getpid(), threading.current_thread())
        place = f"{folder.path}/{INDEX_FOLDER}/{INDEX_NAME}"
        there = _identity(place)
        held = self._held.get(me)
        if there is not None and held is not None and held.identity == there:
            return held.db
        # Mine is to a file that is gone; of threads that have ended nobody else would close them.
        self._let_go(lambda thread: thread is me[1] or not thread.is_alive())
        if there is None and not make:
            return None
        made_for = (VERSION, f"{folder.identity[0]}:{folder.identity[1]}", self._clock.boot_id())
        if there is not None:
            _check_plain(folder)
        fresh = None if there is None else _open(place, made_for)
        if fresh is not None and _identity(place) != there:
            fresh.close()  # replaced while we opened it: neither the old one nor the new
            return None
        if fresh is None and make:
            fresh = self._make(folder, place, made_for)
        if fresh is not None:
            self._held[me] = _Held(fresh, _identity(place))
        return fresh

    def _let_go(self, whose: Callable[[threading.Thread], bool]) -> None:
        for key in list(self._held):
            pid, thread = key
            if pid != os.getpid() or not whose(thread):
                continue
            if (held := self._held.pop(key, None)) is not None:  # else another thread was first
                held.db.close()

    def _make(self, folder: Folder, place: str, made_for: MadeFor) -> sqlite3.Connection:
        """A new, empty index under a temp name, put in place whole."""
        self.throw_away(folder)
        with folder.subfolder(INDEX_FOLDER, create=True) as home:
            temp = f"{INDEX_NAME}.{os.urandom(4).hex()}.new"
            home.put_new(temp, b"")
            fine = seal.is_fine(home, temp)
            with closing(_connect(os.path.join(home.path, temp))) as db:
                # WAL, so that readers never wait; it stays with the file.
                db.execute("PRAGMA journal_mode = WAL")
                with open(
                    os.path.join(os.path.dirname(__file__), "index.sql"), encoding="utf-8"
                ) as sql:
                    db.executescript(sql.read())
                db.execute("INSERT INTO made_for VALUES (?, ?, ?)", made_for)
                db.execute("UPDATE state SET fine = ?", (fine,))
            home.replace(temp, INDEX_NAME)
        fresh = _open(place, made_for)
        if fresh is None:
            raise sqlite3.DatabaseError("the index cannot be opened after it was made")
        return fresh

    def throw_away(self, folder: Folder) -> None:
        self._let_go(lambda thread: thread is threading.current_thread())
        with suppress(OSError, StoreError), folder.subfolder(INDEX_FOLDER) as home:
            for name in home.names():
                home.remove(name)


_ALL_FILES = (
    "SELECT job_id, inode, size, mtime_ns FROM jobs "
    "UNION ALL SELECT job_id, inode, size, mtime_ns FROM unreadable"
)


def _identity(place: str) -> tuple[int, int] | None:
    try:
        state = os.stat(place, follow_symlinks=False)
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _check_plain(folder: Folder) -> None:
    """SQLite follows links; we do not. Raises `UnsafePath` for anything but files of our own."""
    with folder.subfolder(INDEX_FOLDER) as home:
        for suffix in ("", "-wal", "-shm"):
            name = INDEX_NAME + suffix
            with suppress(FileNotFoundError):
                # Not opened: closing any handle of it would drop the locks of our own connections.
                home.check_file(os.stat(name, dir_fd=home.fd, follow_symlinks=False), name)


def _connect(place: str) -> sqlite3.Connection:
    db = sqlite3.connect(place, timeout=_BUSY_SEC, isolation_level=None, check_same_thread=False)
    try:
        # The index may be lost at any time; it only must not be wrong after kill -9.
        db.execute("PRAGMA synchronous = OFF")
        # One that is killed leaves without closing, and the next one reads what stands in the log.
        db.execute("PRAGMA wal_autocheckpoint = 200")
    except BaseException:
        db.close()
        raise
    return db


def _open(place: str, made_for: MadeFor) -> sqlite3.Connection | None:
    """A connection to the index at `place`, or None when it is not one that we can use."""
    db = _connect(place)
    is_ours = False
    try:
        with suppress(sqlite3.Error):
            row = db.execute("SELECT version, folder, boot FROM made_for").fetchone()
            is_ours = row == made_for
    finally:
        if not is_ours:
            db.close()
    return db if is_ours else None


def _files(folder: Folder) -> Iterator[tuple[str, os.stat_result]]:
    with folder.entries() as entries:
        for entry in entries:
            if is_record_name(entry.name):
                try:
                    yield entry.name.removesuffix(RECORD_SUFFIX), entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue


def _dates(state: os.stat_result) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    readable = file_mark(state)
    return readable, (*readable[:2], -state.st_ctime_ns)


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
