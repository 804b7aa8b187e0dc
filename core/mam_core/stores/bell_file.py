"""A bell as a pipe in a folder, and the lock of whoever listens to it.

One relay at a time holds ``relay.lock`` and writes a beat into it; while it
listens, the pipe ``bell`` has a reader. So a publisher that opens the pipe for
writing knows whether there is a relay, and by the beat whether it moves. One
that is stopped keeps its lock: another puts a lock and a pipe of its own in
their place, and the first notices that when it moves again. ``lanes`` says
which brokers the relay reaches.
"""

from __future__ import annotations

import errno
import fcntl
import math
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from types import MappingProxyType

from mam_core.disk import FILE_MODE, Folder
from mam_core.errors import MamError, UnreadableRecord
from mam_core.file_lock import is_stopped
from mam_core.stores.base import RelaySign
from mam_core.stores.lanes_file import read_lanes, remove_lanes, write_lanes

RELAY_LOCK = "relay.lock"
BELL = "bell"

_BEAT_SEC = 1.0
_MARK_BYTES = 100

_NOBODY: Mapping[int, int] = MappingProxyType({})
_OPEN = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class FileBell:
    """`find` opens the folder; it is None where there is none and none is to be made."""

    def __init__(self, find: Callable[[bool], AbstractContextManager[Folder | None]]) -> None:
        self._find = find
        self._fd = self._lock = -1  #: while we are the relay
        self._beat_at = 0.0
        self._lanes: Mapping[str, bool] = {}

    def ring(self) -> bool:
        try:
            with self._find(False) as folder:
                if folder is None:
                    return False
                fd = os.open(BELL, os.O_WRONLY | _OPEN, dir_fd=folder.fd)
                is_alive = not _sign(folder).is_quiet
        except OSError as problem:
            if problem.errno in (errno.ENXIO, errno.ENOENT, errno.ELOOP, errno.EISDIR):
                return False
            raise
        try:
            if not stat.S_ISFIFO(os.fstat(fd).st_mode):
                return False
            with suppress(BlockingIOError):  # so full that nobody can miss it
                os.write(fd, b"!")
        except BrokenPipeError:
            return False
        finally:
            os.close(fd)
        return is_alive

    def relay(self) -> RelaySign | None:
        with self._find(False) as folder:
            try:
                if folder is None:
                    return None
                os.close(os.open(BELL, os.O_WRONLY | _OPEN, dir_fd=folder.fd))
            except OSError:
                return None  # nobody reads it
            return _sign(folder)

    def beat(self) -> bool:
        with self._find(False) as folder:  # raises where our folder is gone, with its bell
            if folder is None or not _stands(folder, self._lock):
                return False
        if time.monotonic() - self._beat_at >= _BEAT_SEC:
            self._beat_at = _mark(self._lock)
        return True

    def lanes(self) -> Mapping[str, bool]:
        with self._find(False) as folder:
            return {} if folder is None else read_lanes(folder)

    def tell_lanes(self, lanes: Mapping[str, bool]) -> None:
        """Asked in every turn, and written only when something changed."""
        if lanes == self._lanes:
            return
        with self._find(False) as folder:
            if folder is not None:
                self._lanes = lanes
                write_lanes(folder, lanes)

    @contextmanager
    def relaying(self) -> Iterator[bool]:
        """Lock and bell. Let go in this order: bell, lock; then look for posts once more.

        Who posts while the bell is gone starts a relay of its own; should that one still meet our
        lock, the post was there before we let go of it, and the last look finds it.
        """
        with self._find(True) as folder:
            assert folder is not None
            lock = _take(folder)
            if lock is None:
                yield False
                return
            try:
                self._beat_at = _mark(lock)
                remove_lanes(folder)  # of one that was killed
                self._lanes = {}
                self._fd, self._lock = _hang(folder), lock
                try:
                    yield True
                finally:
                    bell, self._fd, self._lock = self._fd, -1, -1
                    os.close(bell)
                    if _stands(folder, lock):
                        remove_lanes(folder)
            finally:
                os.close(lock)

    def wait(self, timeout: float, others: Mapping[int, int] = _NOBODY) -> bool:
        import select

        with self._find(False):  # raises where our folder is gone, with its bell
            pass
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        for fd, events in others.items():
            poll.register(fd, events)
        if not any(fd == self._fd for fd, _ in poll.poll(timeout * 1000)):
            return False
        with suppress(BlockingIOError):
            while len(os.read(self._fd, 4096)) == 4096:
                pass
        return True


def bell_beside(path: str) -> FileBell:
    """Beside the file, so that all who use the file have the same one."""
    folder, name = os.path.split(os.path.abspath(path))
    place = os.path.join(folder, f".{name}.relay")

    @contextmanager
    def find(create: bool) -> Iterator[Folder | None]:
        try:
            folder = Folder.open(place, create=create)
        except FileNotFoundError:
            yield None
            return
        with folder:
            yield folder

    return FileBell(find)


def _take(folder: Folder) -> int | None:
    """The lock, held; None when another relay is at work."""
    lock = folder.open_in_place(RELAY_LOCK, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return _take_over(folder) if _sign(folder).is_silent else None
    if _stands(folder, lock):
        return lock
    os.close(lock)  # somebody took over this moment
    return None


def _take_over(folder: Folder) -> int:
    """A lock of our own in place of one that nobody will release.

    The pipe goes first: of several who do this at once the last to put a lock there is the relay,
    and none of the others removes the pipe that it then listens to.
    """
    own = f"{RELAY_LOCK}.{os.getpid()}-{threading.get_ident()}"
    lock = folder.open_in_place(own, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _mark(lock)
        folder.remove(BELL)
        folder.replace(own, RELAY_LOCK)
    except BaseException:
        os.close(lock)
        folder.remove(own)
        raise
    return lock


def _stands(folder: Folder, lock: int) -> bool:
    """The lock that we hold is the one that others find."""
    try:
        found = os.stat(RELAY_LOCK, dir_fd=folder.fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(lock))


def _mark(lock: int) -> float:
    """Who we are, and the beat: by the clock that all processes here share, and nobody sets."""
    now = time.monotonic()
    mark = f"{os.getpid()}\n{now:.3f}\n".encode()
    os.pwrite(lock, mark, 0)
    os.ftruncate(lock, len(mark))
    return now


def _sign(folder: Folder) -> RelaySign:
    """What the lock says about its holder; without a beat (an older version's) it is believed."""
    try:
        data, _ = folder.read(RELAY_LOCK, _MARK_BYTES)
        pid, beat = data.decode().split()
        silent_sec = time.monotonic() - float(beat)
    except (OSError, MamError, ValueError):
        return RelaySign("another process", 0.0)
    return RelaySign(f"process {pid}", math.inf if is_stopped(pid) else silent_sec)


def _hang(folder: Folder) -> int:
    for _ in range(2):
        with suppress(FileExistsError):
            os.mkfifo(BELL, FILE_MODE, dir_fd=folder.fd)
        # Also for writing: a pipe that nobody else has open would be at its end all the time.
        try:
            fd = os.open(BELL, os.O_RDWR | _OPEN, dir_fd=folder.fd)
        except OSError as problem:
            if problem.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise
        else:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                return fd
            os.close(fd)
        # Whoever put it there has our own rights; a folder that holds something stays.
        with suppress(OSError):
            folder.remove(BELL)
        with suppress(OSError):
            os.rmdir(BELL, dir_fd=folder.fd)
    raise UnreadableRecord(f"{folder.path}/{BELL} is no pipe")
