"""Why a job stands where it stands, and by whose word."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mam_core.agents.judging import TWICE_SEC
from mam_core.board.why import BlockReasons, Help, Pair, Why, stamped
from mam_core.claims import Rule
from mam_core.errors import MamError
from mam_core.operations.evidence import Services, gather
from mam_core.operations.listing import listing
from mam_core.operations.past import Change, past
from mam_core.operations.retry import ending
from mam_core.operations.shown import Showing, Shown, labels_of_sessions
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query, Want
from mam_core.summaries import Summary
from mam_core.table import age
from mam_core.tmux.facts import PaneFact, TmuxFailed
from mam_core.work.caps import words

#: Asks tmux; raises `TmuxFailed` when that cannot be done.
Panes = Callable[[], Sequence[PaneFact]]


_RULES = tuple(Rule)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that keeps a pending job from being claimed, and the state of any other."""

    job: Job
    why: Why  #: of one that is pending; of any other it says nothing
    shown: Shown
    now: float
    ahead: int = 0  #: pending jobs of its label that are claimed before it
    lease_expired: bool = False
    trouble: str = ""  #: why tmux, or the host that runs it, could not be asked
    there: tuple[str, ...] = ()  #: what another host says, which runs it; foreign text
    history: tuple[Change, ...] | None = None  #: where it was asked for

    @property
    def sentences(self) -> list[str]:
        return self.said(lambda _: "")

    def said(self, key: Callable[[Help], str]) -> list[str]:
        """`key` names the one that the operator of a console has for what helps."""
        job = self.job
        if job.status is Status.PENDING:
            return self.why.sentences(key) or [self._in_line()]
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

    def _in_line(self) -> str:
        job = self.job
        place = "next in line"
        if self.ahead:
            place = f"{self.ahead:,} job{' is' if self.ahead == 1 else 's are'} ahead of it"
        if self.why.served:
            return f"queued: {place}; a worker of label {job.agent_session} will claim it"
        who = f"a worker of label {job.agent_session} that serves agent {job.agent}"
        return f"queued: {place}, for {who}"

    def to_dict(self) -> dict[str, Any]:
        job, why = self.job, self.why
        in_order = sorted(why.holds, key=lambda hold: _RULES.index(hold.rule))
        told = {
            "job_id": job.job_id,
            "status": job.status,
            "claimable": job.status is Status.PENDING and not why.holds,
            "refusals": [{"rule": hold.rule, "message": hold.words} for hold in in_order],
            "ahead": self.ahead,
            "lease_expired": self.lease_expired,
            "reason": job.reason,
            "detail": job.detail,
            "sentences": self.sentences,
            "shown": self.shown.to_dict(self.now),
            "seen_by": job.node if self.there else None,
            "holds": [hold.to_dict() for hold in why.holds],
            "since": stamped(why.since),
            "until": stamped(why.until),
            "can_run": why.can_run,
            "served": why.served,
            "help": [help._asdict() for help in why.help],
        }
        if self.history is not None:
            told["history"] = [change.to_dict() for change in self.history]
        return told


class Reasons:
    """The answers for one pending job or for many."""

    def __init__(self, registry: Registry, services: Services | None = None) -> None:
        """Without `services` nobody knows who serves a job."""
        self._registry = registry
        self._services = services
        self._known: dict[str, Summary | None] = {}
        self._blocks = BlockReasons(self._look_up)
        self._pairs: set[Pair] = set()
        self._groups: set[str] = set()
        self._lines: dict[str, list[tuple[int, int, str]] | None] = {}

    def why(self, job: Summary) -> Why:
        pair, group = (job.agent_session, job.agent), job.group
        if self._blocks.evidence is None or pair not in self._pairs or group not in self._groups:
            self._pairs.add(pair)
            self._groups |= {group} if group is not None else set()
            registry, services = self._registry, self._services
            self._blocks.gather(gather(registry, services, self._pairs, self._groups))
        return self._blocks.why(job, self._registry.clock.now())

    def ahead(self, job: Summary) -> int:
        """How many are claimed first: of a higher priority, or as urgent and older."""
        label, registry = job.agent_session, self._registry
        if label not in self._lines:  # the first of a label is counted, for others all are sorted
            self._lines[label] = None
            want = Want(label, None, registry.clock.now(), registry.slots)
            return registry.store.ahead(want, job)
        line = self._lines[label]
        if line is None:
            line = self._lines[label] = self._line(label)
        return bisect_left(line, (-job.priority, job.order, job.job_id))

    def _line(self, label: str) -> list[tuple[int, int, str]]:
        registry = self._registry
        jobs, _ = listing(registry, Query(frozenset({Status.PENDING}), agent_session=label))
        self._known.update((job.job_id, job) for job in jobs)
        blocks = BlockReasons(self._look_up)
        blocks.gather(gather(registry, None, (), {job.group for job in jobs if job.group}))
        now = registry.clock.now()
        free = (job for job in jobs if not blocks.is_held(job, now))
        return sorted((-job.priority, job.order, job.job_id) for job in free)

    def _look_up(self, job_id: str) -> Summary | None:
        if job_id not in self._known:
            self._known[job_id] = None
            with suppress(MamError):
                self._known[job_id] = Summary.of(self._registry.get(job_id))
        return self._known[job_id]


def why(
    registry: Registry,
    job_id: str,
    *,
    registry_path: str | None = None,
    panes: Panes | None = None,
    with_history: bool = False,
    reasons: Reasons | None = None,
) -> Explanation:
    """With `registry_path` and `panes`, tmux is asked for a pane that should be there.

    `reasons` know who serves the job; a caller that asks about many jobs keeps them.
    """
    job, found, ahead = registry.get(job_id), Why(), 0
    if job.status is Status.PENDING:
        reasons, summary = reasons or Reasons(registry), Summary.of(job)
        found = reasons.why(summary)
        ahead = 0 if found.holds else reasons.ahead(summary)
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
        found,
        shown or showing.one(job, holds=found.holds),
        registry.clock.now(),
        ahead=ahead,
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
