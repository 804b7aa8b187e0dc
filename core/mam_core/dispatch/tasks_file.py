"""The file of a dispatch registry: read whole by anybody, changed by one at a time.

A change is read, checked and written under the lock beside it; the new text is
synced and renamed into place, so that jq and every other reader see the old one or
the new one, whole.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from mam_core.disk import Folder, explain, is_temp_name, sync_fd, temp_name, write_all
from mam_core.dispatch.layout import Sheet, Whole, compose, parse
from mam_core.dispatch.lock import PATIENCE_SEC, TasksLock
from mam_core.dispatch.tasks import DispatchError, Task, local_stamp

DEFAULT_PATH = os.path.join("~", "Downloads", "dispatch-registry.json")
REGISTRY_VARIABLE = "REGISTRY"
MAX_BYTES = 256 * 2**20


def tasks_path(named: str | None = None, environ: Mapping[str, str] | None = None) -> str:
    """`named`, else ``REGISTRY``, else the document's place."""
    environ = os.environ if environ is None else environ
    return os.path.abspath(
        os.path.expanduser(named or environ.get(REGISTRY_VARIABLE) or DEFAULT_PATH)
    )


class Draft:
    """The file while it is being changed; what was put is written when the block ends."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.is_changed = False

    def get(self, task_id: str) -> Task | None:
        return self.sheet.get(task_id)

    def put(self, task_id: str, task: Task) -> None:
        """In place of the one that is there."""
        self.sheet.put(task_id, task)
        self.is_changed = True

    def whole(self) -> Whole:
        return parse(self.sheet.text)

    def replace(self, text: bytes) -> None:
        """All of it, in our layout; nothing is written when it says the same."""
        if text != self.sheet.text:
            self.sheet = Sheet(text)
            self.is_changed = True


class TasksFile:
    """One dispatch registry, by its path."""

    def __init__(self, path: str, patience_sec: float = PATIENCE_SEC) -> None:
        #: A link in one's Downloads leads to the file, and is not replaced by it.
        self.path = os.path.realpath(path)
        self._name = os.path.basename(self.path)
        self._patience_sec = patience_sec

    def exists(self) -> bool:
        return os.path.exists(self.path)

    def load(self) -> Whole:
        """As it stands, without a lock."""
        with self._folder() as folder:
            data, _ = self._read(folder)
        return self._explained(data)

    @contextmanager
    def changing(self, *, create: bool = False) -> Iterator[Draft]:
        """Under the lock; an exception leaves the file as it was."""
        with self._folder(create=create) as folder:
            lock = TasksLock(folder, self._name, self._patience_sec)
            lock.acquire()
            try:
                if lock.left_by_dead:
                    self._clear(folder)
                draft = Draft(self._sheet(folder, lock, create))
                yield draft
                if draft.is_changed:
                    draft.sheet.date(local_stamp(time.time()))
                    self._write(folder, lock, draft.sheet)
            finally:
                lock.release()

    def _folder(self, *, create: bool = False) -> Folder:
        try:
            return Folder.open(os.path.dirname(self.path), create=create)
        except FileNotFoundError:
            raise self._missing() from None

    def _missing(self) -> DispatchError:
        return DispatchError(
            f"there is no dispatch registry {self.path}: make one with mam dispatch init"
        )

    def _read(self, folder: Folder) -> tuple[bytes, os.stat_result]:
        try:
            return folder.read(self._name, MAX_BYTES)
        except FileNotFoundError:
            raise self._missing() from None
        except OSError as problem:
            raise explain(problem, f"cannot read {self.path}") from problem

    def _explained(self, data: bytes) -> Whole:
        try:
            return parse(data)
        except DispatchError as problem:
            raise DispatchError(f"{self.path} cannot be read: {problem.message}") from None

    def _sheet(self, folder: Folder, lock: TasksLock, create: bool) -> Sheet:
        if create and not folder.has(self._name):
            return Sheet(compose(Whole({}, {})))
        data, state = self._read(folder)
        if lock.seals(state):
            return Sheet(data)
        return Sheet(compose(self._explained(data)))

    def _write(self, folder: Folder, lock: TasksLock, sheet: Sheet) -> None:
        temp = temp_name(self._name)
        try:
            fd = folder.create(temp, b"")
            try:
                for part in sheet.parts():
                    write_all(fd, part)
                sync_fd(fd, self.path)
                folder.replace(temp, self._name)
                # Of what we wrote, not of what is there by now: a stranger needs no lock.
                lock.seal(os.fstat(fd))
            except BaseException:
                folder.remove(temp)
                raise
            finally:
                os.close(fd)
        except OSError as problem:
            raise explain(problem, f"cannot write {self.path}") from problem

    def _clear(self, folder: Folder) -> None:
        """What somebody left who was killed while writing; nobody else writes now."""
        for name in folder.names():
            if is_temp_name(name) and name.startswith(f".{self._name}."):
                folder.remove(name)
