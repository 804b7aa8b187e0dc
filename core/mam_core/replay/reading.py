"""The audit log of every job as whole lines: piece by piece, from where a reader stopped.

Nothing is held but one piece of one log, whatever its size. A line that is torn or no
JSON object is counted and passed over; the end that a writer is still at is left for the
next look.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from mam_core import codec
from mam_core.audit import META
from mam_core.audit_base import Piece
from mam_core.audit_lines import EVENTS
from mam_core.disk import Folder
from mam_core.errors import MamError
from mam_core.records import check_job_id

#: As much as is read at once.
_PIECE_BYTES = 1024 * 1024
#: The longest line that is believed: an event may have a megabyte, and its line a little more.
_LONGEST_BYTES = 4 * 1024 * 1024


class FolderLogs:
    """All logs below one folder; a place in one is a byte. For one thread."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._root: Folder | None = None

    def __enter__(self) -> FolderLogs:
        try:
            self._root = Folder.open(self.path)
        except (OSError, MamError):
            self._root = None  # nothing was ever logged here
        return self

    def __exit__(self, *exc: object) -> None:
        if self._root is not None:
            self._root.close()

    def names(self) -> Iterator[str]:
        """The jobs that have a log, in no order."""
        if self._root is None:
            return
        with self._root.entries() as entries:
            for entry in entries:
                try:
                    check_job_id(entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        yield entry.name
                except (MamError, OSError):
                    continue

    def sizes(self, job_ids: Iterable[str] | None = None) -> dict[str, int]:
        """Of the jobs' logs, in bytes; 0 where there is none."""
        chosen = self.names() if job_ids is None else job_ids
        return {job_id: self._size(job_id) for job_id in chosen}

    def _size(self, job_id: str) -> int:
        if self._root is None:
            return 0
        try:
            path = f"{job_id}/{EVENTS}"
            return os.stat(path, dir_fd=self._root.fd, follow_symlinks=False).st_size
        except OSError:
            return 0

    def meta(self, job_id: str) -> dict[str, Any] | None:
        """The record as registered, without its secrets."""
        try:
            with self._folder(job_id) as folder:
                return codec.loads(folder.read(META, codec.MAX_RECORD_BYTES)[0])
        except (OSError, MamError):
            return None

    def pieces(self, job_id: str, since: int = 0) -> Iterator[Piece]:
        """What stands after byte `since`, which is where a line begins."""
        try:
            with self._folder(job_id) as folder:
                fd, _ = folder.open_file(EVENTS)
        except (OSError, MamError):
            return
        try:
            yield from _pieces(fd, since)
        finally:
            os.close(fd)

    def _folder(self, job_id: str) -> Folder:
        if self._root is None:
            raise FileNotFoundError(self.path)
        return self._root.subfolder(check_job_id(job_id))


def _pieces(fd: int, since: int) -> Iterator[Piece]:
    reach = _PIECE_BYTES
    while data := os.pread(fd, reach, since):
        whole, newline, rest = data.rpartition(b"\n")
        if not newline:
            if len(data) < reach:
                return  # its writer is still at it, or was killed
            if reach >= _LONGEST_BYTES:
                since = _after_line(fd, since + len(data))
                yield Piece([], since, 1)
            reach = _LONGEST_BYTES
            continue
        reach = _PIECE_BYTES
        since += len(data) - len(rest)
        yield _parsed(whole.split(b"\n"), since)


def _parsed(raws: list[bytes], until: int) -> Piece:
    lines: list[dict[str, Any]] = []
    damaged = 0
    for raw in raws:
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            damaged += 1
            continue
        if isinstance(line, dict):
            lines.append(line)
        else:
            damaged += 1
    return Piece(lines, until, damaged)


def _after_line(fd: int, since: int) -> int:
    """Where the line ends that nobody can have meant."""
    while data := os.pread(fd, _PIECE_BYTES, since):
        at = data.find(b"\n")
        if at >= 0:
            return since + at + 1
        since += len(data)
    return since
