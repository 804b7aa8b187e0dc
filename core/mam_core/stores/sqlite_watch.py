"""A SQLite file, watched: its folder says when, its change numbers say what.

Every commit writes to the WAL, which the kernel tells us of; then the database is asked
which jobs were written after the number that we know. So nothing is missed, however
much the kernel drops, and nothing is read that did not change.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mam_core.errors import MamError, RegistryMissing
from mam_core.events.directory_watch import DirectoryWatch
from mam_core.events.watch import Changes
from mam_core.stores.sql_base import ChangedSince


class SqliteWatch:
    """Asks on the thread of whoever drains it."""

    def __init__(self, path: str, changed_since: ChangedSince, wake: Callable[[], None]) -> None:
        folder, name = os.path.split(path)
        names = {name, f"{name}-wal"}
        self._folder = DirectoryWatch(
            folder, wake, stem_of=lambda each: name if each in names else None
        )
        self._changed_since = changed_since
        self._number: int | None = None

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
        try:
            self._number = self._changed_since(None)[0]
        except RegistryMissing:
            self._number = 0
        except MamError:
            self._number = None  # the feed's own look says what is wrong

    def close(self) -> None:
        self._folder.close()

    def drain(self) -> Changes:
        seen = self._folder.drain()
        if not (seen.stems or seen.in_doubt or seen.sights):
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
