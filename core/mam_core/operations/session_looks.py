"""Look at the sessions again and again, as a console does: cheaply, with what their jobs do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mam_core.operations.panes import PaneFact, Panes, TmuxFailed
from mam_core.operations.running_records import RunningRecords
from mam_core.operations.sessions import Seen, at_work, seen_alive
from mam_core.operations.shown import Showing, Shown
from mam_core.presence import Announcements
from mam_core.registry import Registry
from mam_core.sessions import SessionFolder
from mam_core.tmux.facts import TmuxMissing


class SessionsNow(NamedTuple):
    """All sessions, and the shown state of every job that they run."""

    seen: tuple[Seen, ...]
    shown: Mapping[str, Shown]
    trouble: str = ""  #: why tmux cannot be asked
    has_tmux: bool = True


class SessionLooks:
    """Remembers what it has read, and reads again only what has changed: files of sessions and
    workers, records, logs. For one thread at a time."""

    def __init__(self, registry: Registry, registry_path: str, panes: Panes) -> None:
        self._registry = registry
        self._panes = panes
        self._folder = SessionFolder(registry_path)
        self._announcements = Announcements(self._folder)
        self._records = RunningRecords(registry)
        self._labels: set[str] = set()
        self._showing = Showing(registry, self._labels)

    def look(self) -> SessionsNow:
        """One question to tmux; raises what a registry that cannot be read raises."""
        trouble, has_tmux = "", True
        facts: list[PaneFact] | None = None
        problem: TmuxFailed | None = None
        try:
            facts = self._panes.facts()
        except TmuxFailed as failed:
            problem, trouble = failed, failed.message
            has_tmux = not isinstance(failed, TmuxMissing)

        def told() -> list[PaneFact]:
            if facts is None:
                raise problem or TmuxFailed()
            return facts

        stands, families = seen_alive(self._folder, self._announcements, told, self._registry.node)
        running = self._records.all() if stands else []
        seen = tuple(at_work(stands, families, self._registry, running) if stands else ())
        self._labels |= {one.label for one in seen if one.session is not None}
        busy = {job_id for one in seen for job_id in one.jobs}
        shown = self._showing.all_of(running, facts) if busy else {}
        return SessionsNow(
            seen,
            {job_id: one for job_id, one in shown.items() if job_id in busy},
            trouble,
            has_tmux,
        )
