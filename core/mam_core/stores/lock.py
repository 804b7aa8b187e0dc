"""The registry's one lock: an exclusive ``flock`` on ``.lock``, with a bounded wait.

It is the lock of the documents, so scripts of the original exclude us and we
them. Ours also leaves a mark in the file while it is held: the next holder sees
from a mark that was never wiped that somebody died in the middle, and who waits
too long can name whom it waits for.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from contextlib import suppress
from weakref import WeakValueDictionary

from mam_core.disk import Folder, explain
from mam_core.errors import LockTimeout
from mam_core.file_lock import PATIENCE_SEC, holder_in_words

LOCK_NAME = ".lock"

_LOOK_EVERY_SEC = 0.05
#: Between two tries we sleep for this share of what we have waited so far: where many change hands
#: quickly, nobody oversleeps the moment, and where one is at long work, nobody burns a core.
_PAUSE_SHARE = 1 / 8
_SHORTEST_PAUSE_SEC = 0.0001
_LONGEST_PAUSE_SEC = 0.004

_locks: WeakValueDictionary[tuple[int, int], RegistryLock] = WeakValueDictionary()


class RegistryLock:
    """Excludes other processes by ``flock`` and other threads of this one by a mutex.

    A thread that already holds it may take it again.
    """

    def __init__(self, folder: Folder) -> None:
        # A handle of its own: the lock outlives the store that happened to ask for it first.
        self._folder = folder.duplicate()
        self._mutex = threading.RLock()
        self._depth = 0
        self._fd = -1
        self._pid = 0
        self._turn = 0
        self._shown_at = 0.0
        self._identity: tuple[int, int] | None = None
        self._left_by_dead = False

    @classmethod
    def of(cls, folder: Folder) -> RegistryLock:
        """The lock of a folder: one object a process, however often the registry is opened."""
        # Two threads at once may make two: the files' lock keeps them apart all the same.
        return _locks.get(folder.identity) or _locks.setdefault(folder.identity, cls(folder))

    def acquire(self, *, wait: bool = True) -> bool:
        """Take the lock. True when its last holder died without letting go.

        With `wait` false, BlockingIOError answers at once that somebody has it.
        """
        if self._pid not in (0, os.getpid()):
            self._leave_parent()
        self._take_mutex(wait)
        try:
            self._depth += 1
            if self._depth > 1:
                return False
            self._open()
            self._wait(wait)
            return self._mark()
        except BaseException:
            self._depth -= 1
            self._mutex.release()
            raise

    def release(self, *, wipe: bool = True) -> None:
        """Let go. With `wipe` false the mark stays, and the next holder sees to what is left."""
        try:
            if self._depth == 1:
                # A mark that cannot be wiped only makes the next holder look twice.
                with suppress(OSError):
                    if wipe:
                        os.ftruncate(self._fd, 0)
                fcntl.flock(self._fd, fcntl.LOCK_UN)
        finally:
            self._depth -= 1
            self._mutex.release()

    def still_here(self) -> None:
        """For a holder at long work: whoever waits sees a new mark, and has patience anew."""
        now = time.monotonic()
        if now - self._shown_at < _LOOK_EVERY_SEC:
            return
        self._shown_at = now
        with suppress(OSError):
            os.pwrite(self._fd, self._new_mark(), 0)

    def __enter__(self) -> RegistryLock:
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    def __del__(self) -> None:
        """Shared by all stores of the folder in this process: it goes with the last of them."""
        if self._fd >= 0:
            os.close(self._fd)
        self._folder.close()

    def _take_mutex(self, wait: bool) -> None:
        turn = self._turn
        while not self._mutex.acquire(timeout=PATIENCE_SEC if wait else 0):
            if not wait:
                raise BlockingIOError
            if turn == self._turn:
                raise LockTimeout(
                    f"another thread of this process (pid {os.getpid()}) has held the lock of "
                    f"{self._folder.path} for {PATIENCE_SEC:g} s"
                )
            turn = self._turn  # it changed hands meanwhile: patience starts anew

    def _leave_parent(self) -> None:
        """After a fork: the parent's handle would share its lock with us, so take our own."""
        os.close(self._fd)
        self._fd = -1
        self._pid = 0
        self._depth = 0
        self._mutex = threading.RLock()

    def _open(self) -> None:
        if self._fd >= 0:
            return
        try:
            self._fd = self._folder.open_in_place(LOCK_NAME, os.O_RDWR)
            self._identity = None
        except OSError as problem:
            raise explain(problem, f"cannot lock {self._folder.path}") from problem
        self._pid = os.getpid()

    def _wait(self, wait: bool) -> None:
        deadline = 0.0
        look = 0.0
        holder = ""
        began = time.monotonic()
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    raise
            else:
                if self._is_current():
                    return
                os.close(self._fd)
                self._fd = -1
                self._open()
                continue
            now = time.monotonic()
            if now >= look:
                look = now + _LOOK_EVERY_SEC
                # A busy registry changes hands all the time: patience starts anew with each.
                if (mark := self._read_mark()) != holder or not deadline:
                    holder, deadline = mark, now + PATIENCE_SEC
            if now >= deadline:
                raise LockTimeout(
                    f"the lock of {self._folder.path} has been held by {self._name_holder()} "
                    f"for {PATIENCE_SEC:g} s"
                )
            pause = min((now - began) * _PAUSE_SHARE, _LONGEST_PAUSE_SEC)
            # Waiters that came together part again; the clock's last digits are random enough.
            part = 0.5 + time.monotonic_ns() % 512 / 1024
            time.sleep(max(pause, _SHORTEST_PAUSE_SEC) * part)

    def _is_current(self) -> bool:
        """The file that we locked is still the one that others will open."""
        try:
            there = os.stat(LOCK_NAME, dir_fd=self._folder.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        if self._identity is None:
            ours = os.fstat(self._fd)
            self._identity = (ours.st_dev, ours.st_ino)
        self._left_by_dead = there.st_size > 0
        return (there.st_dev, there.st_ino) == self._identity

    def _mark(self) -> bool:
        died = self._left_by_dead
        mark = self._new_mark()
        try:
            # In this order: at no moment is the sign gone that somebody died.
            os.pwrite(self._fd, mark, 0)
            if died:
                os.ftruncate(self._fd, len(mark))
        except OSError as problem:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            raise explain(problem, f"cannot lock {self._folder.path}") from problem
        return died

    def _new_mark(self) -> bytes:
        self._turn += 1
        return f"{os.getpid()} {self._turn:010} {time.monotonic_ns():020}\n".encode()

    def _read_mark(self) -> str:
        return os.pread(self._fd, 100, 0).decode("ascii", "replace")

    def _name_holder(self) -> str:
        return holder_in_words(self._fd, self._read_mark().split(" ")[0])
