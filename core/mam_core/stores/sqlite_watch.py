"""A SQLite file, watched: its folder says when, its change numbers say what.

Every commit writes to the WAL, which the kernel tells us of; then the database is asked
which jobs were written after the number that we know. So nothing is missed, however
much the kernel drops, and nothing is read that did not change.

A commit can be read only after its sync, and of that moment nobody tells: it is in shared
memory. So we look again a few times after the WAL was written to.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from mam_core.errors import MamError, RegistryMissing
from mam_core.events.directory_watch import DirectoryWatch
from mam_core.events.watch import Changes
from mam_core.pace import PARTING_SEC
from mam_core.stores.sql_base import ChangedSince

#: Between the looks after the last write; a sync may take seconds on a busy disk.
_AGAIN_SEC = (0.05, 0.25, 1.0, 5.0)


class SqliteWatch:
    """Asks on the thread of whoever drains it."""

    def __init__(self, path: str, changed_since: ChangedSince, wake: Callable[[], None]) -> None:
        folder, name = os.path.split(path)
        names = {name, f"{name}-wal"}
        self._folder = DirectoryWatch(
            folder, wake, stem_of=lambda each: name if each in names else None
        )
        self._changed_since = changed_since
        self._wake = wake
        self._number: int | None = None
        self._stirred = threading.Event()
        self._is_due = threading.Event()  #: another look, without a word of the kernel
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._remind, name="mam-look-again", daemon=True)

    @property
    def up(self) -> bool | None:
        return self._folder.up

    @property
    def since(self) -> float:
        return self._folder.since

    @property
    def text(self) -> str:
        return self._folder.text

    def start(self) -> None:
        self._folder.start()
        self._thread.start()
        try:
            self._number = self._changed_since(None)[0]
        except RegistryMissing:
            self._number = 0
        except MamError:
            self._number = None  # the feed's own look says what is wrong

    def close(self) -> None:
        self._folder.close()
        self._stop.set()
        self._stirred.set()
        if self._thread.is_alive():
            self._thread.join(PARTING_SEC)

    def drain(self) -> Changes:
        is_due = self._is_due.is_set()
        self._is_due.clear()
        seen = self._folder.drain()
        if seen.stems or seen.in_doubt or seen.sights:
            self._stirred.set()
        elif not is_due:
            return seen
        known = self._number
        try:
            self._number, changed = self._changed_since(known)
        except RegistryMissing:
            self._number, changed = 0, {}
        except MamError:
            return Changes(set(), seen.sights, True)
        # Another file stands there now: its numbers say nothing about what we knew.
        in_doubt = known is None or self._number < known
        return Changes(set(changed), seen.sights, in_doubt)

    def _remind(self) -> None:
        """On a thread of its own, which sleeps while nothing is written."""
        while self._stirred.wait() and not self._stop.is_set():
            self._stirred.clear()
            for pause in _AGAIN_SEC:
                if self._stop.wait(pause) or self._stirred.is_set():
                    break
                self._is_due.set()
                self._wake()
