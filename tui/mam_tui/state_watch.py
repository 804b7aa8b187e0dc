"""What the agents of running jobs are doing, looked up when something was heard and now and then.

Now and then, because silence is news too: a lease that runs late, a pane that is
gone. Only running jobs cost anything, and only what changed is handed on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mam_core.board.why import Evidence, Pair
from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.operations.panes import PaneFact, Panes
from mam_core.pace import paced
from mam_core.records import Status
from mam_core.summaries import Summary

if TYPE_CHECKING:
    from mam_core.operations.evidence import Hosts, Services
    from mam_core.operations.shown import Showing, Shown
    from mam_core.registry import Registry

#: Between two looks that nobody called for.
_LOOK_SEC = 2.0
#: At least this lies between two looks, however much is heard.
_PACE_SEC = 0.25
#: How much of the time may go into asking why pending jobs do not run: a large registry that other
#: tools write to has to be read as a whole for that.
_ASKING_SHARE = 0.1


class States(NamedTuple):
    """What is shown of running jobs that looks different now, and why pending ones do not run."""

    shown: dict[str, Shown]
    evidence: Evidence | None  #: None: as before


class StateWatch:
    """Runs on a thread of its caller's; `heard` may be called from any other."""

    def __init__(
        self,
        registry_path: str,
        config: Config,
        panes: Panes | None,
        hosts: Hosts | None,
        deliver: Callable[[States], None],
    ) -> None:
        self._path = registry_path
        self._config = config
        self._panes = panes
        self._hosts = hosts
        self._deliver = deliver
        self._wake = threading.Event()
        self._groups: set[str] = set()
        self._pairs: set[Pair] = set()  #: labels and agents that jobs wait, or waited, for
        self._told: dict[str, Shown] = {}
        self._evidence: Evidence | None = None
        self._ask_at = 0.0
        self._services: Services | None = None
        self._labels: frozenset[str] | None = None
        self._showing: Showing | None = None

    def heard(self, jobs: Iterable[Summary] = ()) -> None:
        """Something happened; whom the jobs wait for is kept, to ask how that stands."""
        for job in jobs:
            if job.status is Status.PENDING:
                self._pairs.add((job.agent_session, job.agent))
                if job.group is not None:
                    self._groups.add(job.group)
        self._wake.set()

    def run(self, registry: Registry, stop: threading.Event) -> None:
        """Until `stop`, which must be followed by a `heard` to be noticed at once."""
        self._services = None  # of another handle
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
        evidence = self._gathered(registry)
        changed = evidence != self._evidence
        self._evidence = evidence
        if news or changed:
            self._deliver(States(news, evidence if changed else None))

    def _gathered(self, registry: Registry) -> Evidence:
        """What was gathered last, until it is time to ask again."""
        began = time.monotonic()
        if self._evidence is not None and began < self._ask_at:
            return self._evidence
        evidence = self._gather(registry)
        now = time.monotonic()
        self._ask_at = now + (now - began) * (1 / _ASKING_SHARE - 1)
        return evidence

    def _gather(self, registry: Registry) -> Evidence:
        """Nobody is looked for who would serve a label that no job waits for."""
        from mam_core.operations.evidence import Services, gather

        if self._services is None:
            self._services = Services(registry, self._path, self._config, self._hosts)
        waiting = registry.store.queued()
        pairs = {pair for pair in set(self._pairs) if pair[0] in waiting}
        return gather(registry, self._services, pairs, set(self._groups))

    def _all_panes(self) -> list[PaneFact] | None:
        """None: tmux cannot be asked, and nothing follows from that."""
        if self._panes is None:
            return None
        try:
            return self._panes.facts()
        except MamError:
            return None
