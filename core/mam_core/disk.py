"""The one way this package touches files: through an open folder, never through a link.

A `Folder` holds its directory open. Names are resolved against that handle, so
nobody can swap the path under us; files are opened without following links and
are believed only when they are plain files of an owner we trust. What we make
is 0600 in folders of 0700, whatever the umask.
"""

from __future__ import annotations

import errno
import os
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mam_core.errors import StoreError, SyncFailed, UnsafePath

FILE_MODE = 0o600
FOLDER_MODE = 0o700

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_PLACE = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_HOLD = getattr(os, "O_PATH", _READ) | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_SENTENCES = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your disk quota is used up",
    errno.EROFS: "it is on a read-only file system",
    errno.EACCES: "permission denied",
    errno.EPERM: "the system does not permit it",
    errno.EIO: "the disk reports an input/output error",
    errno.EMFILE: "this process has too many files open",
    errno.ENAMETOOLONG: "the name is too long",
}


def explain(problem: OSError, where: str) -> StoreError:
    """`problem` as a sentence that names the place and, where we know it, the cause."""
    cause = _SENTENCES.get(problem.errno or 0) or (problem.strerror or str(problem)).lower()
    return StoreError(f"{where}: {cause}")


class Folder:
    """A directory held open; the names of its files are resolved against the handle."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd
        self._state = os.fstat(fd)

    @classmethod
    def open(cls, path: str, *, create: bool = False) -> Folder:
        """Raises FileNotFoundError when it is absent and not to be made."""
        path = os.path.abspath(path)
        try:
            return cls(path, os.open(path, _FOLDER))
        except FileNotFoundError:
            if not create:
                raise
        except OSError as problem:
            raise _no_folder(problem, path) from None
        try:
            _make_folders(path)
            keep_out_of_git(path)
            return cls(path, os.open(path, _FOLDER))
        except OSError as problem:
            raise explain(problem, f"cannot make {path}") from problem

    def duplicate(self) -> Folder:
        """Another handle on the same folder, closed on its own."""
        return Folder(self.path, os.dup(self.fd))

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        """Warn if it was never closed, as Python does for its own files."""
        if self.fd >= 0:
            self.close()
            _warn(f"unclosed folder {self.path}", ResourceWarning, stacklevel=2, source=self)

    @property
    def identity(self) -> tuple[int, int]:
        return self._state.st_dev, self._state.st_ino

    @property
    def mode(self) -> int:
        return self._state.st_mode & 0o777

    @property
    def is_loose(self) -> bool:
        """Others than the owner may look in."""
        return bool(self._state.st_mode & 0o077)

    def check_owner(self) -> None:
        """Refuse to write into somebody else's folder: they could not read what we leave there."""
        if self._state.st_uid != os.geteuid():
            raise UnsafePath(
                f"{self.path} belongs to user {self._state.st_uid} and you are {os.geteuid()}: "
                "nothing was written"
            )

    def tighten(self) -> None:
        os.fchmod(self.fd, FOLDER_MODE)
        self._state = os.fstat(self.fd)

    def is_present(self) -> bool:
        """The path still names this folder."""
        try:
            now = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        return (now.st_dev, now.st_ino) == self.identity

    def subfolder(self, name: str, *, create: bool = False) -> Folder:
        """A folder below this one, opened through the handle; made when asked for."""
        path = os.path.join(self.path, name)
        try:
            return Folder(path, os.open(name, _FOLDER, dir_fd=self.fd))
        except FileNotFoundError:
            if not create:
                raise
        except OSError as problem:
            raise _no_folder(problem, path) from None
        return self.make_subfolder(name) or self.subfolder(name)

    def make_subfolder(self, name: str) -> Folder | None:
        """A folder below this one that was not there before; None when it was."""
        try:
            os.mkdir(name, FOLDER_MODE, dir_fd=self.fd)
        except FileExistsError:
            return None
        path = os.path.join(self.path, name)
        try:
            made = Folder(path, os.open(name, _FOLDER, dir_fd=self.fd))
        except PermissionError:  # a umask that takes our own rights
            os.chmod(name, FOLDER_MODE, dir_fd=self.fd)
            made = Folder(path, os.open(name, _FOLDER, dir_fd=self.fd))
        if made.mode != FOLDER_MODE:
            made.tighten()
        return made

    def check_file(self, state: os.stat_result, name: str) -> None:
        """Raise `UnsafePath` unless `state` is a plain file that we or the folder's owner made."""
        if not stat.S_ISREG(state.st_mode):
            raise UnsafePath(f"{name} is {_kind(state.st_mode)}, not a file")
        if state.st_uid not in (os.geteuid(), self._state.st_uid, 0):
            raise UnsafePath(f"{name} belongs to user {state.st_uid}")

    def open_file(self, name: str) -> tuple[int, os.stat_result]:
        """A plain file, opened for reading, and its state.

        Raises FileNotFoundError when it is not there, `UnsafePath` when it is
        a link, a pipe, a folder or somebody else's.
        """
        try:
            fd = os.open(name, _READ, dir_fd=self.fd)
        except OSError as problem:
            if problem.errno in (errno.ELOOP, errno.EMLINK):
                raise UnsafePath(f"{name} is a symbolic link") from None
            if problem.errno == errno.ENXIO:
                raise UnsafePath(f"{name} is a socket or a device, not a file") from None
            raise
        try:
            state = os.fstat(fd)
            self.check_file(state, name)
        except BaseException:
            os.close(fd)
            raise
        return fd, state

    def read(self, name: str, limit: int) -> tuple[bytes, os.stat_result]:
        """All of a plain file of at most `limit` bytes, with its state; raises as `open_file`."""
        fd, state = self.open_file(name)
        try:
            if state.st_size > limit:
                raise UnsafePath(f"{name} has {state.st_size} bytes; the limit is {limit}")
            return read_all(fd, state.st_size), state
        finally:
            os.close(fd)

    def open_in_place(self, name: str, mode: int) -> int:
        """A file that we keep writing in, made if need be: ours, plain, known by no second name."""
        fd = os.open(name, mode | _IN_PLACE, FILE_MODE, dir_fd=self.fd)
        try:
            state = os.fstat(fd)
            self.check_file(state, name)
            if state.st_nlink > 1:
                raise UnsafePath(f"{name} has a second name")
            if state.st_mode & 0o777 != FILE_MODE:
                os.fchmod(fd, FILE_MODE)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def create(self, name: str, data: bytes) -> int:
        """Make a file that must not exist yet and leave it open; on failure it is removed again."""
        fd = os.open(name, _MAKE, FILE_MODE, dir_fd=self.fd)
        try:
            os.fchmod(fd, FILE_MODE)
            write_all(fd, data)
        except BaseException:
            os.close(fd)
            self.remove(name)
            raise
        return fd

    def put_new(self, name: str, data: bytes) -> None:
        """Make a file that must not exist yet."""
        os.close(self.create(name, data))

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def hold(self, name: str) -> int | None:
        """A handle that keeps a file from being freed when another one takes its name.

        Only to be closed: then it is freed. None where there is no file, or it cannot be held.
        """
        try:
            return os.open(name, _HOLD, dir_fd=self.fd)
        except OSError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Put `data` in place of whatever `name` held: readers see the old or the new, whole."""
        temp = temp_name(name)
        self.put_new(temp, data)
        try:
            self.replace(temp, name)
        except BaseException:
            self.remove(temp)
            raise

    def remove(self, name: str) -> None:
        """Remove a file; one that is already gone is fine."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)

    def has(self, name: str) -> bool:
        # Not `stat`: most answers are no, and an exception for each would cost more than the call.
        return os.access(name, os.F_OK, dir_fd=self.fd, follow_symlinks=False)

    def names(self) -> list[str]:
        with self.entries() as entries:
            return [entry.name for entry in entries]

    @contextmanager
    def entries(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """What is in the folder, by a handle of its own: a shared one has one place to read on."""
        fd = os.open(".", _FOLDER, dir_fd=self.fd)
        try:
            with os.scandir(fd) as entries:
                yield entries
        finally:
            os.close(fd)

    def sync(self) -> None:
        sync_fd(self.fd, self.path)

    def sync_all(self) -> None:
        """Everything of this file system: for many files cheaper than one fsync each."""
        import ctypes  # 10 ms, paid by bulk writers only

        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is None:
            os.sync()
        elif syncfs(self.fd) != 0:
            raise SyncFailed(f"{self.path}: {os.strerror(ctypes.get_errno()).lower()}")


def sync_fd(fd: int, where: str) -> None:
    """fsync. A full disk is an error like any other; after any else the disk is not trusted."""
    try:
        os.fsync(fd)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise SyncFailed(f"{where} could not be synced: {problem.strerror}") from problem


def temp_name(stem: str) -> str:
    """A name beside the record, as the documents have it: ``.<stem>.<random>.tmp``."""
    return f".{stem}.{os.urandom(4).hex()}.tmp"


def is_temp_name(name: str) -> bool:
    return name.startswith(".") and name.endswith(".tmp")


def read_all(fd: int, size: int) -> bytes:
    """Everything from the file's position on; `size` is only the first guess."""
    data = os.read(fd, size + 1)
    if len(data) <= size:
        return data
    parts = [data]
    while part := os.read(fd, 65536):
        parts.append(part)
    return b"".join(parts)


def write_all(fd: int, data: bytes | memoryview) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def keep_out_of_git(path: str) -> None:
    """Nothing below a ``.mam`` folder belongs into a commit: prompts, tokens, logs."""
    home = os.path.dirname(path)
    if os.path.basename(home) != ".mam":
        return
    with suppress(OSError, StoreError), Folder.open(home) as folder:
        folder.put_new(".gitignore", b"*\n")


def _make_folders(path: str) -> None:
    """`path` and its missing parents, each 0700."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, FOLDER_MODE)
        except FileExistsError:
            continue
        os.chmod(folder, FOLDER_MODE)


def _no_folder(problem: OSError, path: str) -> StoreError:
    if problem.errno == errno.ELOOP or os.path.islink(path):
        return UnsafePath(f"{path} is a symbolic link: name the folder itself")
    if problem.errno == errno.ENOTDIR:
        return UnsafePath(f"{path} is not a folder")
    return explain(problem, f"cannot open {path}")


def _kind(mode: int) -> str:
    for test, words in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISLNK, "a symbolic link"),
    ):
        if test(mode):
            return words
    return "a device"
