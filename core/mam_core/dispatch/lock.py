"""The lock of a dispatch registry: ``flock`` on ``<file>.lock`` beside it, with a bounded wait.

The lock file also remembers who holds it, for whoever waits too long, and the
state of the file as we left it: as long as that is its state, its text is ours.
It is never removed: a script of one's own may lock it as well.
"""

from __future__ import annotations

import fcntl
import os
import time

from mam_core.disk import Folder, explain
from mam_core.errors import LockTimeout

#: Longer than a sync over the network may hold it (`remote_lock`).
PATIENCE_SEC = 20.0
_LONGEST_PAUSE_SEC = 0.02
_HOLDER = 11  #: bytes: ten digits of a pid and a blank


def lock_name(name: str) -> str:
    return f"{name}.lock"


class TasksLock:
    """Held from `acquire` to `release`; excludes threads of one process, too."""

    def __init__(self, folder: Folder, name: str, patience_sec: float = PATIENCE_SEC) -> None:
        self._folder = folder
        self._name = lock_name(name)
        self._patience_sec = patience_sec
        self._fd = -1
        self.left_by_dead = False  #: whoever held it before died without letting go

    def acquire(self) -> None:
        try:
            self._fd = self._folder.open_in_place(self._name, os.O_RDWR)
        except OSError as problem:
            raise explain(problem, f"cannot lock {self._path}") from problem
        try:
            self._wait()
            self.left_by_dead = bool(self._holder())
            os.pwrite(self._fd, b"%10d " % os.getpid(), 0)
        except BaseException:
            self._close()
            raise

    def release(self) -> None:
        try:
            os.pwrite(self._fd, b" " * _HOLDER, 0)
        finally:
            self._close()

    def seals(self, state: os.stat_result) -> bool:
        """The file is as we left it."""
        return os.pread(self._fd, 200, _HOLDER) == _seal(state)

    def seal(self, state: os.stat_result) -> None:
        data = _seal(state)
        os.pwrite(self._fd, data, _HOLDER)
        os.ftruncate(self._fd, _HOLDER + len(data))

    @property
    def _path(self) -> str:
        return os.path.join(self._folder.path, self._name)

    def _holder(self) -> str:
        return os.pread(self._fd, _HOLDER, 0).decode("ascii", "replace").strip()

    def _wait(self) -> None:
        holder, deadline, pause = "", time.monotonic() + self._patience_sec, 0.0002
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                now = time.monotonic()
                if (there := self._holder()) != holder:
                    # It changes hands: patience begins anew.
                    holder, deadline = there, now + self._patience_sec
                if now >= deadline:
                    who = f"pid {holder}" if holder else "another process"
                    raise LockTimeout(
                        f"{self._path} has been locked by {who} for {self._patience_sec:g} s"
                    ) from None
                # Waiters that came together part again.
                time.sleep(pause * (0.5 + time.monotonic_ns() % 512 / 512))
                pause = min(pause * 1.5, _LONGEST_PAUSE_SEC)
            else:
                return

    def _close(self) -> None:
        os.close(self._fd)
        self._fd = -1


def _seal(state: os.stat_result) -> bytes:
    return b"%d %d %d %d\n" % (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
