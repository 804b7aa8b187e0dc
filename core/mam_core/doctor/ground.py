"""Where the doctor stands, and one look from there: everything is asked once, when first needed.

A second look is a new object, so that nothing of the first is believed by mistake.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.locations import REGISTRY_VARIABLE, nearest_place
from mam_core.operations.sessions import Seen, stand
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.sessions import SessionFolder
from mam_core.stores.base import Query
from mam_core.summaries import Summary
from mam_core.tmux.facts import PaneFact, Server, TmuxFailed
from mam_core.wiring import open_tmux
from mam_core.work.processes import Process, everybody, read_fact

_PROGRAMS = ("mam", "mam_core")


class Ground(NamedTuple):
    """What is examined."""

    registry: Registry
    registry_path: str
    config: Config
    allow_network: bool = False

    @property
    def has_registry(self) -> bool:
        """Of records in a database this host may have no folder yet."""
        return bool(self.registry.store.url) or os.path.lexists(self.registry_path)

    @property
    def sessions(self) -> SessionFolder:
        return SessionFolder(os.path.abspath(self.registry_path))

    def tmux(self) -> Server:
        """Raises `TmuxFailed` where it cannot be used at all."""
        try:
            return open_tmux(self.registry_path, self.config)
        except TmuxFailed:
            raise
        except MamError as trouble:  # its library is missing, or its socket has no name
            raise TmuxFailed(trouble.message) from None


class Look:
    """One look at all of it."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground

    @property
    def registry(self) -> Registry:
        return self.ground.registry

    # -- the registry ----------------------------------------------------------------------

    @cached_property
    def running(self) -> dict[str, Job]:
        """Whole records, by id."""
        found = self.registry.store.bodies(Query(frozenset({Status.RUNNING})))
        return {job.job_id: job for job in found if isinstance(job, Job)}

    @cached_property
    def pending(self) -> list[Summary]:
        return self.registry.store.find(Query(frozenset({Status.PENDING})))[0]

    # -- tmux ------------------------------------------------------------------------------

    def panes(self) -> list[PaneFact]:
        """Raises `TmuxFailed`, as often as it is asked: then nothing is known."""
        answer = self._panes
        if isinstance(answer, TmuxFailed):
            raise answer
        return answer

    @cached_property
    def _panes(self) -> list[PaneFact] | TmuxFailed:
        try:
            return self.ground.tmux().panes()
        except TmuxFailed as trouble:
            return trouble

    @property
    def tmux_trouble(self) -> str:
        """Why tmux cannot be asked; empty when it can."""
        answer = self._panes
        return answer.message if isinstance(answer, TmuxFailed) else ""

    @cached_property
    def sessions(self) -> list[Seen]:
        return stand(self.ground.sessions, self.panes, self.registry.node)

    # -- processes -------------------------------------------------------------------------

    @cached_property
    def everybody(self) -> list[Process]:
        return everybody()

    @cached_property
    def commands(self) -> dict[int, list[str]]:
        """The words of every process's command line, by pid; none where there is no ``/proc``."""
        return {process.pid: command_of(process.pid) for process in self.everybody}


def command_of(pid: int) -> list[str]:
    words = read_fact(pid, "cmdline").split(b"\0")
    return [os.fsdecode(word) for word in words[:-1]]


def is_mam(command: list[str]) -> bool:
    """Started as ``mam …`` or as ``python -m mam_core …``."""
    return any(os.path.basename(word).split(".")[0] in _PROGRAMS for word in command)


def options_of_worker(command: list[str]) -> dict[str, str] | None:
    """What stands after each word of a ``mam work``; None for any other command."""
    if "work" not in command:
        return None
    at = command.index("work")
    if not is_mam(command[:at]):
        return None
    after: list[str] = []
    for word in command[at + 1 :]:
        after += word.split("=", 1) if word.startswith("--") else [word]
    return dict(zip(after, [*after[1:], ""], strict=True))


def registry_of_worker(pid: int, options: Mapping[str, str]) -> str | None:
    """The real path of the registry that a worker serves, empty for one that has ended; None where
    that cannot be said."""
    try:
        cwd = os.readlink(f"/proc/{pid}/cwd")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    except OSError:
        return None
    environ = {REGISTRY_VARIABLE: variables_of(pid).get(REGISTRY_VARIABLE, "")}
    path = nearest_place(options.get("--registry-dir"), environ, cwd).path
    # None of that need be so: its settings may name another one, which we do not read here.
    return os.path.realpath(path) if os.path.isdir(path) else None


def variables_of(pid: int) -> dict[str, str]:
    """What a process was given at its start; nothing where it is not ours to read."""
    pairs = (entry.partition(b"=") for entry in read_fact(pid, "environ").split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
