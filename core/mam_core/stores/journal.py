"""Intents: what a lock holder is about to do, so that the next one can finish it.

A change is prepared in temp files, named here, then made by renames, then told
to the audit log. The intent is the commit point: a process killed before it
left nothing but temp files, one killed after it left a to-do list that the next
lock holder works off. It needs no fsync: kill -9 does not take the page cache,
and after a power cut each record is the old or the new one, whole.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from mam_core.disk import Folder, read_all, sync_fd

JOURNAL_NAME = ".journal"

#: Unwritten audit lines are kept for later up to here; past it the oldest are given up.
MAX_DEBT_BYTES = 1024 * 1024


_ENCODER = json.JSONEncoder(separators=(",", ":"))


class Intent(NamedTuple):
    """Renames to make, then audit lines to write: ``(job_id, line)``."""

    moves: Sequence[tuple[str, str]]
    audit: Sequence[tuple[str, dict[str, Any]]]


class Journal:
    """The file ``.journal`` in the registry folder; touched only by the lock's holder."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._fd = -1
        self._inode = 0
        self._end = 0

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def is_empty(self) -> bool:
        """Asked first by every holder of the lock: another one may have replaced the file."""
        try:
            there = os.stat(JOURNAL_NAME, dir_fd=self._folder.fd, follow_symlinks=False)
        except FileNotFoundError:
            self.close()
            return True
        if there.st_ino != self._inode:
            self.close()
        self._end = there.st_size
        return self._end == 0

    def begin(self, intent: Intent, *, sync: bool = False) -> None:
        """From here on the change will be made, by us or by the next holder of the lock."""
        fd = self._open()
        data = _encode(intent)
        end = self._end
        try:
            while data:
                written = os.pwrite(fd, data, self._end)
                self._end += written
                data = data[written:]
            if sync:
                sync_fd(fd, JOURNAL_NAME)
        except BaseException:
            os.ftruncate(fd, end)
            self._end = end
            raise

    def pending(self) -> list[Intent]:
        """What is not finished; a line cut short by a power cut counts as never written."""
        fd = self._open()
        os.lseek(fd, 0, os.SEEK_SET)
        data = read_all(fd, os.fstat(fd).st_size)
        return [intent for line in data.splitlines() if (intent := _decode(line)) is not None]

    def clear(self) -> None:
        os.ftruncate(self._open(), 0)
        self._end = 0

    def sync(self) -> None:
        sync_fd(self._open(), JOURNAL_NAME)

    def owe(self, audit: Sequence[tuple[str, dict[str, Any]]]) -> int:
        """Keep nothing but these audit lines for later; how many of them had to be given up.

        Replaced whole, so that a full disk leaves what stood here: every intent may be worked off
        twice.
        """
        if not audit:
            self.clear()
            return 0
        kept: list[tuple[str, dict[str, Any]]] = []
        room = MAX_DEBT_BYTES - len(_encode(Intent((), ())))
        for debt in reversed(audit):  # the newest are kept
            room -= len(_ENCODER.encode(debt)) + 1
            if room < 0:
                break
            kept.append(debt)
        kept.reverse()
        self._folder.write(JOURNAL_NAME, _encode(Intent((), kept)) if kept else b"")
        self.close()
        return len(audit) - len(kept)

    def _open(self) -> int:
        if self._fd < 0:
            self._fd = self._folder.open_in_place(JOURNAL_NAME, os.O_RDWR)
            state = os.fstat(self._fd)
            self._inode, self._end = state.st_ino, state.st_size
        return self._fd


def _encode(intent: Intent) -> bytes:
    body = _ENCODER.encode([intent.moves, intent.audit]).encode("ascii")
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _decode(line: bytes) -> Intent | None:
    checksum, _, body = line.partition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(body):
            return None
        moves, audit = json.loads(body)
    except ValueError:
        return None
    return Intent(
        [(source, target) for source, target in moves],
        [(job_id, dict(rest)) for job_id, rest in audit],
    )
