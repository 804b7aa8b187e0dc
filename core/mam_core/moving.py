"""Moving a file or a folder whole, and proving that what arrived is what left."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress

from mam_core.disk import FILE_MODE, FOLDER_MODE, Folder

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CHUNK = 1 << 20

#: A file by its size and digest, a link by -1 and where it leads, anything else by -2.
Print = tuple[int, str]
Fingerprint = Mapping[str, Print]


def move(source: Folder, name: str, target: Folder) -> None:
    """Move `name`; raises FileExistsError when something else has that name there.

    Both folders are locked by the caller, so nobody takes the name between the
    look and the rename; in return the file is never in both places or in none.
    """
    if target.has(name):
        if not holds(target, name, fingerprint(source, name)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        remove(source, name)  # a copy that an earlier move did not get to remove
        return
    remove(target, _temp_name(name))  # of a copy that was cut short
    tighten(source, name)
    try:
        os.rename(name, name, src_dir_fd=source.fd, dst_dir_fd=target.fd)
    except OSError as problem:
        if problem.errno != errno.EXDEV:
            raise
        _copy(source, name, target)
        remove(source, name)


def fingerprint(folder: Folder, name: str) -> Fingerprint:
    """What stands at `name`: one print for a file, one for each file of a folder."""
    return {
        path: _print(folder, os.path.join(name, path) if path else name)
        for path in _files_at(folder, name)
    }


def holds(folder: Folder, name: str, wanted: Fingerprint) -> bool:
    """Everything in `wanted` is there, the same; a log that has grown since is the same log."""
    for path, (size, digest) in wanted.items():
        at = os.path.join(name, path) if path else name
        try:
            if _print(folder, at, size) != (size, digest):
                return False
        except OSError:
            return False
    return True


def remove(folder: Folder, name: str) -> None:
    """Remove a file or a whole folder; what is already gone is fine."""
    with suppress(FileNotFoundError):
        if _is_folder(folder, name):
            shutil.rmtree(name, dir_fd=folder.fd)
        else:
            os.unlink(name, dir_fd=folder.fd)


def tighten(folder: Folder, name: str) -> None:
    """Take what others may do with it from `name` and all below; not possible is no obstacle."""
    if _is_folder(folder, name):
        for _, _, files, fd in os.fwalk(name, dir_fd=folder.fd):
            _set_mode(fd, ".", FOLDER_MODE)
            for file in files:
                _set_mode(fd, file, FILE_MODE)
    else:
        _set_mode(folder.fd, name, FILE_MODE)


def _set_mode(at: int, name: str, mode: int) -> None:
    with suppress(OSError):  # a link, a pipe, or somebody else's
        fd = os.open(name, _READ, dir_fd=at)
        try:
            if not stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.fchmod(fd, mode)
        finally:
            os.close(fd)


def _copy(source: Folder, name: str, target: Folder) -> None:
    """To another file system: a whole copy under a temp name first, on disk before it counts."""
    temp = _temp_name(name)
    original, copy = os.path.join(source.path, name), os.path.join(target.path, temp)
    if _is_folder(source, name):
        shutil.copytree(original, copy, symlinks=True)
    else:
        shutil.copy2(original, copy, follow_symlinks=False)
    target.sync_all()
    target.replace(temp, name)
    target.sync()


def _temp_name(name: str) -> str:
    """The same at every try, so that the next one clears away what the last one left."""
    return f".{name}.moving.tmp"


def _is_folder(folder: Folder, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_mode)


def _files_at(folder: Folder, name: str) -> Iterator[str]:
    """The paths below `name` of everything that is no folder; the empty path for a file itself."""
    if not _is_folder(folder, name):
        yield ""
        return
    for path, folders, files, fd in os.fwalk(name, dir_fd=folder.fd):
        below = os.path.relpath(path, name)
        for entry in (*files, *(f for f in folders if _is_link(fd, f))):
            yield os.path.normpath(os.path.join(below, entry))


def _is_link(at: int, name: str) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)


def _print(folder: Folder, path: str, size: int | None = None) -> Print:
    """The print of a file, of its first `size` bytes when that is given."""
    state = os.stat(path, dir_fd=folder.fd, follow_symlinks=False)
    if stat.S_ISLNK(state.st_mode):
        return -1, os.readlink(path, dir_fd=folder.fd)
    if not stat.S_ISREG(state.st_mode):
        return -2, stat.filemode(state.st_mode)[0]
    import hashlib

    left = length = state.st_size if size is None or size < 0 else min(size, state.st_size)
    digest = hashlib.sha256()
    fd = os.open(path, _READ, dir_fd=folder.fd)
    with os.fdopen(fd, "rb") as file:
        while left and (chunk := file.read(min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    return length, digest.hexdigest()
