"""How a worker in a session shows that it is there.

``NAME.worker`` holds its mark (pid, start time, boot) and is locked by it for as
long as it lives: the lock keeps a second one out, the mark tells others whom to
ask.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from mam_core.codec import loads
from mam_core.disk import Folder
from mam_core.errors import StoreError, UnreadableRecord
from mam_core.process_mark import ProcessMark, is_out_of_view, pid_namespace
from mam_core.sessions import WORKER, FileMark, SessionFolder, check_name, file_mark, mark_of
from mam_core.tmux.facts import SessionExists

_LIMIT = 4096


class Presence:
    """A worker's claim to be the one of its session; ends with the process, however that ends."""

    def __init__(self, folder: Folder, fd: int) -> None:
        self._folder = folder
        self._fd = fd

    @classmethod
    def announce(cls, sessions: SessionFolder, name: str) -> Presence:
        """Raises `SessionExists` when another worker is there already."""
        folder = Folder.open(sessions.path)
        try:
            fd = folder.open_in_place(check_name(name) + WORKER, os.O_RDWR)
        except BaseException:
            folder.close()
            raise
        presence = cls(folder, fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mark = ProcessMark.of(os.getpid())
            assert mark is not None
            os.ftruncate(fd, 0)
            said = {**mark.to_dict(), "namespace": pid_namespace()}
            os.pwrite(fd, json.dumps(said).encode() + b"\n", 0)
        except BlockingIOError:
            presence.close()
            raise SessionExists(f"session {name} has a worker already") from None
        except BaseException:
            presence.close()
            raise
        return presence

    def close(self) -> None:
        os.close(self._fd)
        self._folder.close()

    def __enter__(self) -> Presence:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Announced(NamedTuple):
    """What the last worker of a session wrote; it may be gone."""

    mark: ProcessMark
    namespace: int  #: the PID namespace in which it has that pid; 0: not known

    @property
    def is_out_of_view(self) -> bool:
        """Whether it lives cannot be seen from here, as from inside an agent's own namespace."""
        return is_out_of_view(self.namespace)


def announced(sessions: SessionFolder, name: str) -> Announced | None:
    """None when there was none, or nothing that makes sense."""
    try:
        with Folder.open(sessions.path) as folder:
            return _read(folder, name)[1]
    except (OSError, StoreError):
        return None


class Announcements:
    """For whoever looks again and again: only files that have changed are read."""

    def __init__(self, sessions: SessionFolder) -> None:
        self._sessions = sessions
        self._read: dict[str, tuple[FileMark, Announced | None]] = {}

    def of(self, names: Iterable[str]) -> dict[str, Announced]:
        """Those of these sessions that have a worker, or had one."""
        found: dict[str, tuple[FileMark, Announced | None]] = {}
        with suppress(OSError, StoreError), Folder.open(self._sessions.path) as folder:
            for name in names:
                with suppress(OSError, StoreError):
                    known = self._read.get(name)
                    if known is None or file_mark(folder, name + WORKER) != known[0]:
                        known = _read(folder, name)
                    found[name] = known
        self._read = found
        return {name: said for name, (_, said) in found.items() if said is not None}


def _read(folder: Folder, name: str) -> tuple[FileMark, Announced | None]:
    data, state = folder.read(check_name(name) + WORKER, _LIMIT)
    try:
        said = loads(data)
        mark = ProcessMark.from_dict(said)
        return mark_of(state), Announced(mark, int(said.get("namespace", 0)))
    except (UnreadableRecord, KeyError, TypeError, ValueError):
        return mark_of(state), None


def worker_of(sessions: SessionFolder, name: str) -> ProcessMark | None:
    """The living worker of a session; None when there is none that can be seen."""
    said = announced(sessions, name)
    return said.mark if said is not None and said.mark.is_alive else None
