"""The health of a registry in a SQLite file: where it lies, whose it is, how long its log is."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial

from mam_core.checkup import Cure, Sign, Weight, fine, version_sign
from mam_core.disk import FILE_MODE, Folder
from mam_core.errors import MamError
from mam_core.stores.mounts import check_local
from mam_core.stores.sql_text import STEPS

_MEBIBYTE = 2**20
#: A log of this size was never folded into the file: somebody has been reading all the time.
_LONG_LOG = 64 * _MEBIBYTE
_PATIENCE_SEC = 5.0


def signs(path: str) -> Iterator[Sign]:
    """Looks only, and makes nothing that is not there."""
    yield fine("store", f"SQLite, {path}")
    folder, name = os.path.split(path)
    try:
        with Folder.open(folder) as home:
            yield from _place(home)
            if not home.has(name):
                yield version_sign(0, len(STEPS))
                return
            yield from _modes(home, name)
    except FileNotFoundError:
        yield version_sign(0, len(STEPS))
        return
    yield from _inside(path)
    yield _log(path)


def _place(home: Folder) -> Iterator[Sign]:
    try:
        check_local(home)
    except MamError as trouble:
        words = f"{trouble.message}; move it with `mam migrate --to sqlite:PATH`, or use PostgreSQL"
        yield Sign("file system", Weight.PROBLEM, words)


def _modes(home: Folder, name: str) -> Iterator[Sign]:
    loose = [each for each in (name, f"{name}-wal", f"{name}-shm") if _is_loose(home, each)]
    if loose:
        words = f"other users may read {', '.join(loose)}"
        cure = Cure("make them 600", partial(_tighten, home.path, loose))
        yield Sign("permissions", Weight.WARNING, words, cure)


def _is_loose(home: Folder, name: str) -> bool:
    try:
        state = os.stat(name, dir_fd=home.fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return bool(state.st_mode & 0o077) and state.st_uid == os.geteuid()


def _tighten(path: str, names: list[str]) -> str:
    """By name: closing a handle of the database would drop the locks of our own connections."""
    with Folder.open(path) as home:
        for name in names:
            home.check_file(os.stat(name, dir_fd=home.fd, follow_symlinks=False), name)
            os.chmod(name, FILE_MODE, dir_fd=home.fd)
    return "nobody else can read them now"


def _inside(path: str) -> Iterator[Sign]:
    try:
        with closing(_opened(path)) as db:
            yield version_sign(_number(db, "user_version"), len(STEPS))
            (mode,) = db.execute("PRAGMA journal_mode").fetchone()
            if mode != "wal":
                words = f"{mode} mode, where readers and writers wait: the next change mends it"
                yield Sign("journal", Weight.NOTE, words)
            (said,) = db.execute("PRAGMA quick_check(1)").fetchone()
            if said != "ok":
                words = f"it is damaged ({said}): stop all of mam, and bring back a copy"
                yield Sign("contents", Weight.PROBLEM, words)
    except sqlite3.Error as trouble:
        yield Sign("contents", Weight.PROBLEM, f"it cannot be read: {trouble}")


def _log(path: str) -> Sign:
    try:
        size = os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        size = 0
    words = f"{size / _MEBIBYTE:.1f} MiB"
    if size < _LONG_LOG:
        return fine("write-ahead log", words)
    words += ": every reader goes through it; somebody keeps it open, or nothing was written since"
    cure = Cure("fold it into the file", partial(_checkpoint, path))
    return Sign("write-ahead log", Weight.WARNING, words, cure)


def _checkpoint(path: str) -> str:
    with closing(_opened(path)) as db:
        busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return "somebody is reading: try it again later" if busy else "it is empty now"


def _opened(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_PATIENCE_SEC, isolation_level=None)


def _number(db: sqlite3.Connection, pragma: str) -> int:
    return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])
