"""What the agents of running jobs are doing, looked up when something was heard and now and then.

Now and then, because silence is news too: a lease that runs late, a pane that is
gone. Only running jobs cost anything, and only what changed is handed on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mam_core.errors import MamError
from mam_core.operations.listing import HeldBack, held_back
from mam_core.operations.panes import PaneFact, Panes
from mam_core.pace import paced
from mam_core.records import Status
from mam_core.summaries import Summary

if TYPE_CHECKING:
    from mam_core.operations.shown import Showing, Shown
    from mam_core.registry import Registry

#: Between two looks that nobody called for.
_LOOK_SEC = 2.0
#: At least this lies between two looks, however much is heard.
_PACE_SEC = 0.25


class States(NamedTuple):
    """What is shown of running jobs that looks different now, and what holds pending ones back."""

    shown: dict[str, Shown]
    held: HeldBack | None  #: None: as before


class StateWatch:
    """Runs on a thread of its caller's; `heard` may be called from any other."""

    def __init__(
        self, registry_path: str, panes: Panes | None, deliver: Callable[[States], None]
    ) -> None:
        self._path = registry_path
        self._panes = panes
        self._deliver = deliver
        self._wake = threading.Event()
        self._samples: dict[str | None, Summary] = {}
        self._told: dict[str, Shown] = {}
        self._held = HeldBack()
        self._labels: frozenset[str] | None = None
        self._showing: Showing | None = None

    def heard(self, jobs: Iterable[Summary] = ()) -> None:
        """Something happened; of each group one job is kept, to ask whether it is full."""
        for job in jobs:
            self._samples.setdefault(job.group, job._replace(status=Status.PENDING))
        self._wake.set()

    def run(self, registry: Registry, stop: threading.Event) -> None:
        """Until `stop`, which must be followed by a `heard` to be noticed at once."""
        while not stop.is_set():
            self._wake.wait(paced(_LOOK_SEC))
            self._wake.clear()
            if stop.is_set():
                return
            with suppress(MamError, OSError):  # the feed says what is wrong; we look again
                self.look(registry)
            stop.wait(_PACE_SEC)

    def look(self, registry: Registry) -> None:
        """Once."""
        from mam_core.operations.shown import Showing, labels_of_sessions

        labels = labels_of_sessions(self._path, registry.node)
        if self._showing is None or labels != self._labels:
            self._labels = labels
            self._showing = Showing(registry, labels)
        found = self._showing.running(self._all_panes() if labels else None)
        # When it was heard of last is told by the event itself, and changes with each.
        found = {job_id: shown._replace(heard_at=None) for job_id, shown in found.items()}
        news = {job_id: shown for job_id, shown in found.items() if self._told.get(job_id) != shown}
        self._told = found
        held = held_back(registry, list(self._samples.values()))
        changed = held != self._held
        self._held = held
        if news or changed:
            self._deliver(States(news, held if changed else None))

    def _all_panes(self) -> list[PaneFact] | None:
        """None: tmux cannot be asked, and nothing follows from that."""
        if self._panes is None:
            return None
        try:
            return self._panes.facts()
        except MamError:
            return None
