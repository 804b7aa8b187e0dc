"""Why a job stands where it stands, and by whose word."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mam_core.agents.judging import TWICE_SEC
from mam_core.claims import Refusal
from mam_core.operations.listing import held_back, listing
from mam_core.operations.past import Change, past
from mam_core.operations.retry import ending
from mam_core.operations.shown import Showing, Shown, labels_of_sessions
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.summaries import claim_order
from mam_core.table import age
from mam_core.tmux.facts import PaneFact, TmuxFailed
from mam_core.work.caps import words

#: Asks tmux; raises `TmuxFailed` when that cannot be done.
Panes = Callable[[], Sequence[PaneFact]]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that keeps a pending job from being claimed, and the state of any other."""

    job: Job
    refusals: tuple[Refusal, ...]
    shown: Shown
    now: float
    ahead: int = 0  #: pending jobs of its label that are claimed before it
    lease_expired: bool = False
    trouble: str = ""  #: why tmux, or the host that runs it, could not be asked
    there: tuple[str, ...] = ()  #: what another host says, which runs it; foreign text
    history: tuple[Change, ...] | None = None  #: where it was asked for

    @property
    def sentences(self) -> list[str]:
        job = self.job
        if job.status is Status.PENDING:
            if self.refusals:
                return [refusal.message for refusal in self.refusals]
            taker = f"session with label {job.agent_session} that serves agent {job.agent}"
            if not self.ahead:
                return [f"the next {taker} will take it"]
            before = "1 job stands" if self.ahead == 1 else f"{self.ahead} jobs stand"
            return [f"{before} before it; after that, the next {taker} will take it"]
        if job.status is Status.RUNNING and self.there:
            return [*self.there, f"{job.node} says so itself, where it runs"]
        if job.status is Status.RUNNING:
            sentences = [_running(job, self.lease_expired)]
            sentences.append(f"it is shown as {self.shown.sentence(self.now)}")
            if self.shown.is_doubtful(self.now):
                heard_at = self.shown.heard_at
                last = f"last event {age(self.now - heard_at)} ago" if heard_at else "no event yet"
                sentences.append(f"that is a guess: {last}")
            if self.shown.limit is not None:
                sentences.append(self.shown.limit.sentence(self.now))
            sentences.append(f"its memory: {words(job.memory_cap)}")
            if self.trouble:
                sentences.append(f"whether its pane is there is unknown: {self.trouble}")
            return sentences
        when = f" since {job.ended_at}" if job.ended_at else ""
        return [f"it is {ending(job)}{when}"]

    def to_dict(self) -> dict[str, Any]:
        job = self.job
        told = {
            "job_id": job.job_id,
            "status": job.status,
            "claimable": job.status is Status.PENDING and not self.refusals,
            "refusals": [{"rule": rule, "message": message} for rule, message in self.refusals],
            "ahead": self.ahead,
            "lease_expired": self.lease_expired,
            "reason": job.reason,
            "detail": job.detail,
            "sentences": self.sentences,
            "shown": self.shown.to_dict(self.now),
            "seen_by": job.node if self.there else None,
        }
        if self.history is not None:
            told["history"] = [change.to_dict() for change in self.history]
        return told


class Queues:
    """Who is claimed before whom; each label's line is looked at once, for all who ask."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._lines: dict[str, list[tuple[int, int, str]]] = {}

    def ahead(self, job: Job) -> int:
        """How many come first: of a higher priority, or as urgent and older."""
        line = self._lines.get(job.agent_session)
        if line is None:
            line = self._lines[job.agent_session] = self._line(job.agent_session)
        return bisect_left(line, (-job.priority, claim_order(job), job.job_id))

    def _line(self, label: str) -> list[tuple[int, int, str]]:
        jobs, _ = listing(self._registry, Query(frozenset({Status.PENDING}), agent_session=label))
        held = held_back(self._registry, jobs)
        return sorted((-it.priority, it.order, it.job_id) for it in jobs if not held.holds(it))


def why(
    registry: Registry,
    job_id: str,
    *,
    registry_path: str | None = None,
    panes: Panes | None = None,
    with_history: bool = False,
    queues: Queues | None = None,
) -> Explanation:
    """With `registry_path` and `panes`, tmux is asked for a pane that should be there.

    `queues` is for whoever asks about many.
    """
    job = registry.get(job_id)
    queues = queues or Queues(registry)
    refusals = tuple(registry.refusals(job_id)) if job.status is Status.PENDING else ()
    labels: frozenset[str] = frozenset()
    if registry_path is not None and job.status is Status.RUNNING:
        labels = labels_of_sessions(registry_path, registry.node)
    showing = Showing(registry, labels)
    trouble, shown = "", None
    if panes is not None and job.agent_session in labels:
        try:
            shown = _looked_at_twice(showing, job, panes)
        except TmuxFailed as problem:
            trouble = problem.message
    return Explanation(
        job,
        refusals,
        shown or showing.one(job, refusals=refusals),
        registry.clock.now(),
        ahead=0 if job.status is not Status.PENDING or refusals else queues.ahead(job),
        lease_expired=job.lease is not None and registry.lease_expired(job.lease),
        trouble=trouble,
        history=tuple(past(registry, job_id)) if with_history else None,
    )


def _looked_at_twice(showing: Showing, job: Job, panes: Panes) -> Shown:
    """One miss is none: a second later the pane may be there, or the job somebody else's."""
    found = panes()
    shown = showing.one(job, found)
    if not showing.misses_pane(job, found):
        return shown
    time.sleep(TWICE_SEC)
    return showing.one(job, panes())


def _running(job: Job, lease_expired: bool) -> str:
    where = f" on {job.node}" if job.node else ""
    since = f" since {job.started_at}" if job.started_at else ""
    if job.lease is not None and lease_expired:
        seen = f", last renewed at {job.lease.renewed_at}" if job.lease.renewed_at else ""
        holder = f", but the lease of {job.lease.owner} has expired{seen}"
    elif job.lease is not None:
        holder = f", leased to {job.lease.owner} for {job.lease.ttl_sec:g} s at a time"
    else:
        holder = ", unsupervised: only its own timeouts end it"
    cancelling = ""
    if job.is_cancelling:
        by = f" by {job.cancel_requested_by}" if job.cancel_requested_by else ""
        cancelling = f"; it was asked to end at {job.cancel_requested_at}{by}"
    return f"it is running as attempt {job.attempt}{where}{since}{holder}{cancelling}"
