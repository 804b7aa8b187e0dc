"""A running job whose pane is gone, on a real tmux server (H10)."""

from __future__ import annotations

from pathlib import Path

from mam_core.audit import AuditLog
from mam_core.leases import LeaseTerms
from mam_core.operations.shown import Showing, Shown
from mam_core.process_mark import ProcessMark
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.stores.files import FilesStore
from mam_core.tmux.control import TmuxGlance
from mam_core.tmux.facts import PaneFact, TmuxFailed
from mam_core.tmux.server import TmuxServer
from tests.integration.tmux.conftest import Spawn
from tests.support.handles import close_later
from tests.support.jobs import add, running
from tests.support.patience import eventually


def job_in(pane: PaneFact, registry: Registry, server: TmuxServer) -> Job:
    """Leased by the process in the pane, as by the worker of a session."""
    mark = ProcessMark.of(pane.pid)
    assert mark is not None
    worker = LeaseTerms(f"host:{mark.pid}:{mark.started}:0", 3600.0)
    job = running(registry, lease=worker, agent_session="tmux:claude")
    server.label(pane.pane_id, job_id=job.job_id, attempt=job.attempt)
    return job


def test_is_shown_as_such_once_two_looks_have_missed_it(
    registry: Path, server: TmuxServer, glance: TmuxGlance, spawn: Spawn
) -> None:
    """H10: its session is killed; another one lives on, so that tmux can be asked."""
    store = close_later(FilesStore(str(registry), AuditLog(str(registry.parent / "logs"))))
    jobs = Registry(store, actor="ann", node="host")
    add(jobs, agent_session="tmux:other")
    spawn("other")
    job = job_in(spawn("claude"), jobs, server)
    showing = Showing(jobs)

    def look() -> Shown:
        try:
            panes = glance.panes()
        except TmuxFailed:
            return showing.running(None)[job.job_id]
        return showing.running(panes)[job.job_id]

    assert look().rule == "claimed"
    server.end("claude")
    gone = eventually(lambda: (found := look()).rule == "pane gone" and found, "it is gone")
    assert gone.state == "lost"
    assert "tmux:claude" in gone.words
    store.close()
