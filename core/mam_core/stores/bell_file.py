"""A bell as a pipe in a folder, and the lock of whoever listens to it.

One relay at a time holds ``relay.lock``; while it listens, the pipe ``bell``
has a reader, and a publisher that opens it for writing knows by that alone
whether somebody will take its post. ``lanes`` says which brokers that one reaches.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from types import MappingProxyType

from mam_core.disk import FILE_MODE, Folder
from mam_core.errors import UnreadableRecord
from mam_core.stores.lanes_file import read_lanes, remove_lanes, write_lanes

RELAY_LOCK = "relay.lock"
BELL = "bell"

_NOBODY: Mapping[int, int] = MappingProxyType({})
_OPEN = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class FileBell:
    """`find` opens the folder; it is None where there is none and none is to be made."""

    def __init__(self, find: Callable[[bool], AbstractContextManager[Folder | None]]) -> None:
        self._find = find
        self._fd = -1
        self._lanes: Mapping[str, bool] = {}

    def ring(self) -> bool:
        try:
            with self._find(False) as folder:
                if folder is None:
                    return False
                fd = os.open(BELL, os.O_WRONLY | _OPEN, dir_fd=folder.fd)
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
            lock = folder.open_in_place(RELAY_LOCK, os.O_RDWR)
            try:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    yield False
                    return
                mark = f"{os.getpid()}\n".encode()
                os.pwrite(lock, mark, 0)
                os.ftruncate(lock, len(mark))
                remove_lanes(folder)  # of one that was killed
                self._lanes = {}
                self._fd = _hang(folder)
                try:
                    yield True
                finally:
                    bell, self._fd = self._fd, -1
                    os.close(bell)
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
