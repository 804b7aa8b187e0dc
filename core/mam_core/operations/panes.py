"""The screens of the agents: one lasting look at the registry's tmux server, for whoever watches.

A look by a process of its own costs fifteen times as much, so all who watch share this one.
Nothing is asked, and no client started, before somebody looks.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.operations.placing import pane_of
from mam_core.records import Status
from mam_core.tmux.facts import Capture, Glance, NoServer, PaneFact, TmuxFailed, TmuxMissing
from mam_core.wiring import open_glance

if TYPE_CHECKING:
    from mam_core.registry import Registry

__all__ = ["Capture", "NoScreen", "PaneFact", "Panes", "TmuxFailed", "TmuxMissing", "pane_of"]


class NoScreen(MamError):
    """No session of this host shows this job."""

    title = "No screen"


class Panes:
    """For any number of threads; they take turns."""

    def __init__(self, registry_path: str, config: Config) -> None:
        self._path = registry_path
        self.config = config
        self._lock = threading.Lock()
        self._glance: Glance | None = None

    def facts(self) -> list[PaneFact]:
        """Every pane; none when no server runs. `TmuxFailed`: nobody knows, `TmuxMissing`: and
        nobody can."""
        if shutil.which("tmux") is None:
            raise TmuxMissing
        try:
            return self._door().panes()
        except NoServer:
            return []

    def captures(self, pane_ids: Sequence[str]) -> dict[str, Capture]:
        """What they show, with their colours, in one round trip; what is gone is left out."""
        try:
            return self._door().captures(pane_ids, colours=True) if pane_ids else {}
        except NoServer:
            return {}

    def plain(self, pane_id: str) -> Capture:
        """What one shows, without colours. Raises `TmuxFailed`."""
        return self._door().capture(pane_id)

    def close(self) -> None:
        with self._lock:
            glance, self._glance = self._glance, None
        if glance is not None:
            glance.close()

    def _door(self) -> Glance:
        with self._lock:
            if self._glance is None:
                self._glance = open_glance(self._path, self.config)
            return self._glance


def screen_of(registry: Registry, job_id: str, panes: Panes) -> PaneFact:
    """The pane in which a job is run; raises `NoScreen` with the reason why there is none."""
    job = registry.get(job_id)
    if job.status is Status.PENDING:
        raise NoScreen(f"job {job_id} waits in the queue: it has no screen yet")
    found = pane_of(job, panes.facts(), registry.node)
    if found is not None:
        return found
    if job.status is not Status.RUNNING:
        raise NoScreen(f"job {job_id} has ended: its output is kept, its screen is not")
    if job.lease is not None and job.lease.node != registry.node:
        raise NoScreen(f"job {job_id} runs on {job.lease.node}: its screen is there")
    raise NoScreen(f"job {job_id} runs in no session of this host: it has no screen")


def lines_of(registry: Registry, job_id: str, panes: Panes, *, colours: bool) -> list[str]:
    """What its pane shows now. Raises `NoScreen`, or `TmuxFailed`."""
    pane_id = screen_of(registry, job_id, panes).pane_id
    if not colours:
        return list(panes.plain(pane_id).lines)
    captured = panes.captures([pane_id]).get(pane_id)
    if captured is None:
        raise NoScreen(f"the screen of job {job_id} has just gone")
    return list(captured.lines)
