"""Where the doctor stands, and one look from there: everything is asked once, when first needed.

A second look is a new object, so that nothing of the first is believed by mistake.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import NamedTuple

from mam_core.board.why import BlockReasons
from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.operations.evidence import block_reasons, services_of
from mam_core.operations.sessions import Seen, stand
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.sessions import SessionFolder
from mam_core.stores.base import Query
from mam_core.summaries import Summary
from mam_core.tmux.facts import PaneFact, Server, TmuxFailed
from mam_core.wiring import open_tmux
from mam_core.work.processes import Process, everybody
from mam_core.work.workers_here import command_of


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

    @cached_property
    def reasons(self) -> BlockReasons:
        """Why the pending jobs are not running."""
        services = services_of(self.registry, self.ground.registry_path, self.ground.config)
        return block_reasons(self.registry, services, self.pending)

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
