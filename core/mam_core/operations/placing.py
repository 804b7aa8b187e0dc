"""Which pane a job is run in: one answer, for all who show panes or judge by them."""

from __future__ import annotations

from collections.abc import Iterable

from mam_core.records import Job, Status
from mam_core.tmux.facts import PaneFact


class Placing:
    """The panes of one look, ready to be asked for many jobs."""

    def __init__(self, facts: Iterable[PaneFact], node: str) -> None:
        self._by_job: dict[tuple[str, int], PaneFact] = {}
        self._by_worker: dict[str, PaneFact] = {}  #: by pid
        self._prefix = f"{node}:"
        for fact in facts:
            for job in fact.jobs:
                self._by_job.setdefault(job, fact)
            if fact.label:
                self._by_worker.setdefault(str(fact.pid), fact)

    def of(self, job: Job) -> PaneFact | None:
        """By its own label; else by the worker that holds its lease, which lives in a pane.

        A label comes a moment after the claim, and never where tmux could not be asked.
        """
        fact = self._by_job.get((job.job_id, job.attempt))
        if fact is not None or job.status is not Status.RUNNING or job.lease is None:
            return fact
        owner = job.lease.owner
        if not owner.startswith(self._prefix):
            return None
        return self._by_worker.get(owner.removeprefix(self._prefix).partition(":")[0])


def pane_of(job: Job, facts: Iterable[PaneFact], node: str) -> PaneFact | None:
    """Of one job."""
    return Placing(facts, node).of(job)
