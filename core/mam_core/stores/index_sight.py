"""The index in the hands of the registry's lock holder: one look at it, one change of it.

All that a transaction asks of the index and tells it is one transaction in
SQLite, too, which costs half of what the single statements would. Its write lock
keeps nobody waiting: readers have their snapshot, and writers wait for the
registry's own lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from mam_core.disk import Folder
from mam_core.stores import seal
from mam_core.stores.catalogue import Answers, ScanAnswers, Written
from mam_core.stores.index_answers import IndexAnswers
from mam_core.stores.index_rows import BROKEN_INDEX, State, remove_rows, write_rows

if TYPE_CHECKING:
    from mam_core.stores.index import Index


class IndexSight:
    """For one transaction; what it finds broken is thrown away and made anew by the next one.

    A stranger who does not take the lock can still slip in during the few microseconds of one of
    our own system calls; the periodic look at every file finds that, too.
    """

    def __init__(self, index: Index, folder: Folder, alive: Callable[[], None]) -> None:
        self._index = index
        self._folder = folder
        self._alive = alive
        self._asked = False
        self._db: sqlite3.Connection | None = None
        self._state: State | None = None
        self._seal = seal.BROKEN  # the date that the folder has if nobody else changed it
        self._undisturbed = True
        self._unconfirmed = False

    def answers(self) -> Answers:
        self._begin()
        if not self._is_current():
            self.close()
            self._index.catch_up(self._folder, self._alive)
            self._asked = False
            self._begin()
            if not self._is_current():
                return ScanAnswers(self._folder)  # it could not catch up: nothing is decided by it
        assert self._db is not None
        return IndexAnswers(self._db, self._folder)

    def before_change(self) -> None:
        self._begin()
        if seal.seal_of(self._folder) != self._seal:
            self._undisturbed = False

    def after_change(self) -> None:
        fine = self._state is None or bool(self._state.fine)
        self._seal = seal.renewed_seal(self._folder, fine=fine)

    def note(self, written: Sequence[Written], removed: Sequence[str]) -> None:
        self._begin()
        if self._db is None:
            return
        self._unconfirmed = True
        try:
            if removed:
                remove_rows(self._db, removed)
            if written:
                write_rows(self._db, written)
        except BROKEN_INDEX:
            self._give_up()

    def confirm(self) -> None:
        if self._db is None:
            return
        # Disturbed: the rows are brought up to date, the seal stays broken, the next one looks.
        new = self._seal if self._undisturbed else seal.BROKEN
        try:
            self._db.execute("UPDATE state SET seal = ?", (new,))
            self._unconfirmed = False
        except BROKEN_INDEX:
            self._give_up()

    def close(self) -> None:
        db, self._db = self._db, None
        if db is None or not db.in_transaction:
            return
        try:
            db.execute("ROLLBACK" if self._unconfirmed else "COMMIT")
        except BROKEN_INDEX:
            self._give_up()

    def _begin(self) -> None:
        if self._asked:
            return
        self._asked = True
        try:
            db = self._index.connection(self._folder)
            if db is None:
                return
            db.execute("BEGIN IMMEDIATE")
            self._db = db
            self._state = State.of(db)
            self._seal = self._state.seal
        except BROKEN_INDEX:
            self._give_up()

    def _is_current(self) -> bool:
        if self._db is None or self._state is None:
            return False
        try:
            return self._index.is_current(self._folder, self._state)
        except BROKEN_INDEX:
            return False

    def _give_up(self) -> None:
        db, self._db, self._state = self._db, None, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.execute("ROLLBACK")
        self._index.throw_away(self._folder)
