"""What a session is on disk: one file each, beside the records and hidden from them.

``<registry>/.sessions/NAME.json`` says what was started, so that it can be
stopped, found again after a reboot and told from what somebody else started.
Whether it lives is asked of tmux and of its worker, never of this file. A file
that makes no sense is one row that says so, and keeps nobody from the others.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from mam_core.codec import dumps, loads
from mam_core.disk import Folder, is_temp_name
from mam_core.errors import LockTimeout, MamError, UnreadableRecord
from mam_core.moving_in import move_in
from mam_core.pace import paced
from mam_core.tmux.facts import BadSessionName, NoSuchSession

FOLDER = ".sessions"
LABEL_PREFIX = "tmux:"

#: The file beside the record in which its worker shows itself.
WORKER = ".worker"

_SUFFIX = ".json"
_LOCK = ".lock"
_LIMIT = 64 * 1024
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}", re.ASCII)
_SHOWN = 40
#: A spawn holds the lock until its workers are up; nobody else holds it for long.
_LOCK_SEC = 60.0
_LOOK_SEC = 0.05


#: What tells one version of a file from the next.
FileMark = tuple[int, int, int, int]


class Session(NamedTuple):
    """One session that was started, and what it takes to start it again."""

    name: str  #: of the tmux session
    label: str  #: whose jobs its worker claims
    agent: str
    mode: str
    workdir: str  #: where its worker stands; inside the worktree if there is one
    settings_from: str  #: the folder from which mam.toml was looked for
    created_at: str
    created_by: str
    node: str
    slots: int = 1
    config: str | None = None  #: the settings that were named
    repository: str | None = None
    worktree: str | None = None
    branch: str | None = None
    base: str | None = None  #: the commit that the worktree began with
    stopped_at: str | None = None  #: a person wanted it to end: it is not restored
    stopped_by: str | None = None

    @property
    def pool(self) -> str:
        """The name of all sessions that serve the same label."""
        return self.label.removeprefix(LABEL_PREFIX)

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Session:
        """Raises `UnreadableRecord` that names the key which is wrong. Unknown ones are dropped:
        a later version may have them, and nothing that we do rests on them."""
        known: dict[str, Any] = {}
        for name in cls._fields:
            if name not in data and name in cls._field_defaults:
                continue
            value = data.get(name)
            if not _fits(name, value):
                raise UnreadableRecord(f"its {name} is {value!r:.40}")
            known[name] = value
        session = cls(**known)
        check_name(session.name)
        name_of(session.label)
        return session


class Damaged(NamedTuple):
    """A file in the folder that tells of no session."""

    name: str
    error: str


def _fits(name: str, value: object) -> bool:
    if name == "slots":
        return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 256
    if value is None:
        return name in Session._field_defaults
    return isinstance(value, str) and "\0" not in value


def names_session(label: str) -> bool:
    """Whether a tmux session can be named after it."""
    return label.startswith(LABEL_PREFIX) and bool(_NAME.fullmatch(label, len(LABEL_PREFIX)))


def command_to_serve(label: str, agent: str) -> str:
    """What a person types so that the jobs of a label are taken."""
    if names_session(label):
        return shlex.join(
            ["mam", "spawn", *option("--agent-session", label), *option("--agent", agent)]
        )
    return command_to_work(label, agent)


def command_to_work(label: str, agent: str) -> str:
    """The same by a worker in the shell that it is typed in."""
    return shlex.join(
        ["mam", "work", *option("--agent-session", label), *option("--agents", agent)]
    )


def option(name: str, value: str) -> list[str]:
    """The words of a command line for it; a value that begins with a dash would be an option."""
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def check_name(name: str) -> str:
    """The name itself: it becomes a file, a branch and a target of tmux, so it is a plain word."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        shown = repr(name[:_SHOWN] + "…" if len(name) > _SHOWN else name)
        raise BadSessionName(
            f"{shown} is no name of a session: it must be a letter, a digit or '_', and then at "
            "most 63 letters, digits, '_' or '-'"
        )
    return name


def name_of(label: str) -> str:
    """The name in ``tmux:NAME``."""
    if not label.startswith(LABEL_PREFIX):
        raise BadSessionName(
            f"{label[:_SHOWN]!r} is no label of a tmux session: say {LABEL_PREFIX}NAME"
        )
    return check_name(label.removeprefix(LABEL_PREFIX))


class SessionFolder:
    """The sessions of one registry. Whoever keeps one reads only the files that have changed."""

    def __init__(self, registry_path: str) -> None:
        self.registry_path = registry_path
        self.path = os.path.join(registry_path, FOLDER)
        self._read: dict[str, tuple[FileMark, Session]] = {}

    def all(self) -> tuple[list[Session], list[Damaged]]:
        """By name. A registry without sessions has no folder for them, either."""
        sessions: list[Session] = []
        damaged: list[Damaged] = []
        try:
            folder = Folder.open(self.path)
        except FileNotFoundError:
            return [], []
        with folder:
            for file in sorted(folder.names()):
                if file.endswith(_SUFFIX) and not file.startswith("."):
                    self._sort_in(folder, file.removesuffix(_SUFFIX), sessions, damaged)
        names = {one.name for one in sessions}
        self._read = {name: known for name, known in self._read.items() if name in names}
        return sessions, damaged

    def _sort_in(
        self, folder: Folder, name: str, sessions: list[Session], damaged: list[Damaged]
    ) -> None:
        known = self._read.get(name)
        try:
            if known is None or file_mark(folder, name + _SUFFIX) != known[0]:
                known = self._read[name] = _read(folder, name)
            sessions.append(known[1])
        except FileNotFoundError:
            return  # removed since we listed it
        except (MamError, OSError) as problem:
            damaged.append(Damaged(os.fsencode(name).decode("utf-8", "replace"), str(problem)))

    def get(self, name: str) -> Session:
        """Raises `NoSuchSession`, or `UnreadableRecord` for a file that makes no sense."""
        check_name(name)
        try:
            with Folder.open(self.path) as folder:
                return _read(folder, name)[1]
        except FileNotFoundError:
            raise NoSuchSession(f"there is no session {name} on record") from None

    def put(self, session: Session) -> None:
        with self._made() as folder:
            folder.write(check_name(session.name) + _SUFFIX, dumps(session.to_dict()))

    def remove(self, name: str) -> None:
        """All that is known of it; a worker that still lives keeps its own file open."""
        try:
            folder = Folder.open(self.path)
        except FileNotFoundError:
            return
        with folder:
            for kind in (_SUFFIX, WORKER):
                folder.remove(check_name(name) + kind)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Nobody else starts or stops a session of this registry meanwhile."""
        with self._made() as folder:
            fd = folder.open_in_place(_LOCK, os.O_RDWR)
            try:
                _take(fd, self.path)
                for left in filter(is_temp_name, folder.names()):  # of one who was killed
                    folder.remove(left)
                yield
            finally:
                os.close(fd)

    def _made(self) -> Folder:
        with Folder.open(self.registry_path, create=True) as registry:
            move_in(registry)
            return registry.subfolder(FOLDER, create=True)


def file_mark(folder: Folder, name: str) -> FileMark:
    """Which version of a file stands there; raises FileNotFoundError."""
    return mark_of(os.stat(name, dir_fd=folder.fd, follow_symlinks=False))


def mark_of(state: os.stat_result) -> FileMark:
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _read(folder: Folder, name: str) -> tuple[FileMark, Session]:
    check_name(name)
    data, state = folder.read(name + _SUFFIX, _LIMIT)
    session = Session.from_dict(loads(data))
    if session.name != name:
        raise UnreadableRecord(f"it says that it is session {session.name}")
    return mark_of(state), session


def _take(fd: int, where: str) -> None:
    deadline = time.monotonic() + _LOCK_SEC
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LockTimeout(
                    f"{where}: somebody else has been starting or stopping sessions for "
                    f"{_LOCK_SEC:.0f} s"
                ) from None
        time.sleep(paced(_LOOK_SEC))
