"""Bring a copy of the dispatch registry and the one that it is shared through to one state.

Both are locked from the read to the rename, merged task by task, and written where
they differ. A remote is a path, or ``HOST:PATH``, which is pulled and pushed by rsync
while a small program on that host holds the lock.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from typing import NamedTuple, Protocol

from mam_core.dispatch.layout import Sheet, Whole, compose
from mam_core.dispatch.merge import merge_sheets
from mam_core.dispatch.tasks import DispatchError, tasks_in_words
from mam_core.dispatch.tasks_file import TasksFile
from mam_core.errors import MamError

TIMEOUT_SEC = 15.0

#: As rsync has it: a colon before any slash makes it another host.
_ELSEWHERE = re.compile(r"((?:[^@:/\s]+@)?(?:\[[0-9A-Fa-f:.%]+\]|[^:/\s\[\]]+)):(.*)", re.DOTALL)


class RemoteUnreachable(MamError):
    """The other copy could not be reached; ours goes on as it is."""

    title = "Sync"


class Synced(NamedTuple):
    """What a sync changed, by the number of tasks."""

    pulled: int
    pushed: int

    @property
    def words(self) -> str:
        if self == (0, 0):
            return "both are the same"
        return f"{tasks_in_words(self.pulled)} came, {self.pushed} went"


class Remote(Protocol):
    """The copy that is shared."""

    def sync(self, file: TasksFile, timeout_sec: float) -> Synced:
        """Raises `RemoteUnreachable`, `LockTimeout` or `DispatchError`."""


def remote_at(place: str) -> Remote:
    """Raises `DispatchError` for what is no place."""
    there = _ELSEWHERE.fullmatch(place)
    if there is None:
        if "/" not in place and not os.path.lexists(os.path.expanduser(place)):
            raise DispatchError(
                f"no file {place!r:.80} here; for a file on a host: {place:.60}:PATH, "
                f"for a new file in this folder: ./{place:.60}"
            )
        return _Beside(place)
    host, path = there.groups()
    if host.startswith("-") or not path or path.endswith("/"):
        raise DispatchError(f"{place!r:.80} is no remote: say PATH or HOST:PATH, with its file")
    from mam_core.dispatch.remote import Elsewhere

    return Elsewhere(host, path)


class _Beside:
    """A file that this host sees: a shared folder, a mounted disk."""

    def __init__(self, path: str) -> None:
        self._file = TasksFile(os.path.expanduser(path))

    def sync(self, file: TasksFile, timeout_sec: float) -> Synced:
        if self._file.path == file.path:
            raise DispatchError(f"{file.path} is this very dispatch registry")
        if not os.path.isdir(os.path.dirname(self._file.path)):
            raise RemoteUnreachable(f"the folder of {self._file.path} is not there")
        with ExitStack() as both:
            # In one order, whoever begins: two that meet do not wait for each other.
            drafts = {
                one.path: both.enter_context(one.changing(create=True))
                for one in sorted((file, self._file), key=lambda one: one.path)
            }
            ours, theirs = drafts[file.path], drafts[self._file.path]
            merged = merge_sheets(ours.sheet, theirs.sheet)
            ours.replace(merged.ours)
            theirs.replace(merged.theirs)
            return Synced(merged.pulled, merged.pushed)


def empty_sheet() -> Sheet:
    return Sheet(compose(Whole({}, {})))
