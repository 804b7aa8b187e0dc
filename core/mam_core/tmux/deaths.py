"""The panes that have died, as the server's hook wrote them down, one line each.

The file outlives the tmux server: a death is told also to who looks later. Lines come from a
shell that appends; a reader keeps its place, and a line is read when its end is there.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from mam_core.disk import Folder
from mam_core.errors import StoreError
from mam_core.tmux.facts import Death
from mam_core.tmux.formats import text

FOLDER = ".sessions"
NAME = "died"

#: A file of this size is put aside; the one that was put aside before is given up.
ROTATE_BYTES = 1 << 20

_OLD = NAME + ".old"
_FIELDS = 8


def deaths_path(registry_path: str) -> str:
    return os.path.join(os.path.realpath(registry_path), FOLDER, NAME)


def make_room(folder: Folder) -> None:
    """The file, made if need be and put aside when it is large; the hook opens it by name."""
    fd = folder.open_in_place(NAME, os.O_WRONLY | os.O_APPEND)
    try:
        is_large = os.fstat(fd).st_size > ROTATE_BYTES
    finally:
        os.close(fd)
    if is_large:
        folder.replace(NAME, _OLD)
        make_room(folder)


class Deaths:
    """A reader of the file. Starts at its end unless told otherwise."""

    def __init__(self, registry_path: str, *, from_start: bool = False) -> None:
        self._folder = os.path.dirname(deaths_path(registry_path))
        self._fd = -1
        self._identity: tuple[int, int] | None = None
        self._rest = b""
        self._open()
        if not from_start and self._fd >= 0:
            os.lseek(self._fd, 0, os.SEEK_END)

    def news(self) -> list[Death]:
        """What was written since the last call, in order."""
        found = self._read()
        if self._is_replaced():
            found += self._read()  # lines that came between the two looks
            self.close()
            self._open()
            found += self._read()
        return found

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self._identity = None
        self._rest = b""

    def _open(self) -> None:
        with suppress(OSError, StoreError), Folder.open(self._folder) as folder:
            self._fd, state = folder.open_file(NAME)
            self._identity = (state.st_dev, state.st_ino)

    def _is_replaced(self) -> bool:
        try:
            state = os.stat(os.path.join(self._folder, NAME), follow_symlinks=False)
        except OSError:
            return False
        return (state.st_dev, state.st_ino) != self._identity

    def _read(self) -> list[Death]:
        if self._fd < 0:
            return []
        parts = [self._rest]
        while part := os.read(self._fd, 1 << 16):
            parts.append(part)
        *lines, self._rest = b"".join(parts).split(b"\n")
        # A line without an end can only be a stranger's: ours are short.
        self._rest = self._rest[-(1 << 16) :]
        return [death for line in lines if (death := read_death(line)) is not None]


def read_death(line: bytes) -> Death | None:
    """One line of the file; None when it is not one that the hook wrote for a pane of ours."""
    fields = line.split(b"\t")
    if len(fields) != _FIELDS:
        return None
    pane_id, *numbers = (field.decode("ascii", "replace") for field in fields[:5])
    job_id, label, session = map(text, fields[5:])
    if not label or not pane_id.startswith("%"):
        return None
    try:
        status, signal, at, attempt = (int(word) if word else None for word in numbers)
    except ValueError:
        return None
    # tmux 3.2 does not say when: then it is when we hear of it.
    moment = time.time() if at is None else float(at)
    return Death(pane_id, session, label, job_id, attempt or 0, status, signal, moment)
