"""The state that jobs are shown in: one of them, or all that run, as cheaply as it can be had.

Only running jobs cost something: each one's record is read, and of its audit log what
came since the last look. Whoever asks again and again keeps one `Showing`; tmux is
never asked here, its panes are handed in by whoever looks at them anyway.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mam_core.agents.hearing import Heard
from mam_core.agents.judging import Misses
from mam_core.agents.states import (
    LeaseFacts,
    Pane,
    Shown,
    ShownState,
    moment,
    shown,
)
from mam_core.board.why import Hold
from mam_core.events.missed import posted
from mam_core.operations.placing import Placing
from mam_core.operations.running_records import RunningRecords
from mam_core.record_parts import Lease
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.summaries import Summary
from mam_core.tmux.facts import PaneFact

__all__ = ["Showing", "Shown", "ShownState", "labels_of_sessions", "lease_facts"]

#: Of a log that is read for the first time: some hundred lines, where a state event is told
#: at each change.
_REACH = 64 * 1024


class _Read(NamedTuple):
    """How far a log was read, and what was heard by then."""

    until: int
    heard: Heard


class Showing:
    """Remembers what it has read. For one thread at a time."""

    def __init__(self, registry: Registry, labels: Collection[str] = frozenset()) -> None:
        """`labels` are those of sessions that were spawned here: their jobs have panes."""
        self._registry = registry
        self._labels = labels
        self._records = RunningRecords(registry)
        self._read: dict[str, _Read] = {}
        self._misses: dict[tuple[str, int], Misses] = {}

    def running(self, panes: Sequence[PaneFact] | None = None) -> dict[str, Shown]:
        """All jobs that run, by id. `panes` is None where tmux was not, or cannot be, asked."""
        return self.all_of(self._records.all(), panes)

    def of(
        self, jobs: Iterable[Summary], panes: Sequence[PaneFact] | None = None
    ) -> dict[str, Shown]:
        """Those of `jobs` that run; the others cost nothing and are left out."""
        return self.all_of(self._records.of(jobs), panes)

    def all_of(
        self, still: Sequence[Job], panes: Sequence[PaneFact] | None = None
    ) -> dict[str, Shown]:
        """The same, of records that run and were just read."""
        self._forget_all_but(still)
        heard = self._heard(still)
        placing = self._placing(panes)
        return {job.job_id: self._shown(job, heard[job.job_id], placing) for job in still}

    def one(
        self,
        job: Job,
        panes: Sequence[PaneFact] | None = None,
        holds: tuple[Hold, ...] = (),
    ) -> Shown:
        """Of a record in any status."""
        if job.status is not Status.RUNNING:
            return shown(job, self._registry.clock.now(), holds=holds)
        return self._shown(job, self._heard([job])[job.job_id], self._placing(panes))

    def misses_pane(self, job: Job, panes: Sequence[PaneFact]) -> bool:
        """It should be in one of these panes, and is not."""
        return self._misses_it(job, Placing(panes, self._registry.node))

    def _placing(self, panes: Sequence[PaneFact] | None) -> Placing | None:
        return None if panes is None else Placing(panes, self._registry.node)

    def _misses_it(self, job: Job, placing: Placing) -> bool:
        lease = job.lease
        if lease is None or lease.node != self._registry.node:
            return False
        if (job.job_id, job.attempt) not in self._misses and job.agent_session not in self._labels:
            return False
        if placing.of(job) is not None:
            return False
        # A worker that lives runs outside of tmux, and is as good.
        return self._sees_no_worker(lease)

    def _sees_no_worker(self, lease: Lease) -> bool:
        from mam_core.work.witnesses import Node  # a list in a terminal has no panes to look for

        return Node(self._registry.node, self._registry.clock).sees_no_worker(lease)

    def _shown(self, job: Job, heard: Heard, placing: Placing | None) -> Shown:
        now = self._registry.clock.now()
        lease = lease_facts(self._registry, job.lease) if job.lease is not None else None
        pane = self._pane(job, placing) if placing is not None else None
        return shown(job, now, lease=lease, heard=heard, pane=pane)

    # -- the pane ----------------------------------------------------------------------------

    def _pane(self, job: Job, placing: Placing) -> Pane | None:
        """Where it is; gone after two looks that did not find it."""
        name = job.job_id, job.attempt
        fact = placing.of(job)
        if fact is not None:
            self._misses.setdefault(name, Misses()).seen()
            is_guess = name not in fact.jobs  # by its pid, which another process may have now
            if fact.dead and is_guess and job.lease and not self._sees_no_worker(job.lease):
                return None
            return Pane(fact)
        if not self._misses_it(job, placing):
            return None
        misses = self._misses.setdefault(name, Misses())
        return Pane(None) if misses.missed(self._registry.clock.since_boot()) else None

    # -- the log -----------------------------------------------------------------------------

    def _heard(self, jobs: Sequence[Job]) -> dict[str, Heard]:
        heard = {job.job_id: self._from_log(job) for job in jobs}
        behind = {
            job.job_id: _last_seq(heard[job.job_id])
            for job in jobs
            if job.last_seq > _last_seq(heard[job.job_id])
        }
        if behind:  # no broker has these yet
            for job_id, message in posted(self._registry.store, behind):
                heard[job_id] = heard[job_id].event(message.content)
        return heard

    def _from_log(self, job: Job) -> Heard:
        known = self._read.get(job.job_id)
        if known is None or known.heard.attempt != job.attempt:
            known = None
        elif _last_seq(known.heard) >= job.last_seq and not self._is_late(job):
            return known.heard  # every event has its number in the record: there is no news
        since = known.until if known is not None else None
        until, lines = self._registry.store.audit.news(job.job_id, since, _REACH)
        heard = known.heard if known is not None else Heard(job.attempt)
        for raw in lines:
            if (line := _parsed(raw)) is not None:
                heard = heard.line(line)
        self._read[job.job_id] = _Read(until, heard)
        return heard

    def _is_late(self, job: Job) -> bool:
        """Somebody who looked after it may have written down what he saw."""
        return job.lease is None or lease_facts(self._registry, job.lease).is_late

    def _forget_all_but(self, jobs: Sequence[Job]) -> None:
        here = {(job.job_id, job.attempt) for job in jobs}
        ids = {job.job_id for job in jobs}
        for job_id in self._read.keys() - ids:
            del self._read[job_id]
        for name in self._misses.keys() - here:
            del self._misses[name]


def labels_of_sessions(registry_path: str, node: str) -> frozenset[str]:
    """The labels whose jobs are run in panes of this host."""
    from mam_core.sessions import SessionFolder

    sessions, _ = SessionFolder(registry_path).all()
    return frozenset(one.label for one in sessions if one.node == node and one.stopped_at is None)


def lease_facts(registry: Registry, lease: Lease) -> LeaseFacts:
    """By the store's clock or that of this boot; of another host by the wall clock, with a term
    for its drift."""
    clock = registry.clock
    since = registry.lease_age(lease)
    if since is not None:
        return LeaseFacts(lease.owner, lease.ttl_sec, since, since > lease.ttl_sec)
    if lease.node == registry.node:
        return LeaseFacts(lease.owner, lease.ttl_sec, None, True)
    renewed = moment(lease.renewed_at)
    if renewed is None:
        return LeaseFacts(lease.owner, lease.ttl_sec, None, True)
    ago = max(0.0, clock.now() - renewed)
    return LeaseFacts(lease.owner, 2 * lease.ttl_sec, ago, ago > 2 * lease.ttl_sec)


def _last_seq(heard: Heard) -> int:
    return heard.last.seq if heard.last is not None else 0


def _parsed(raw: bytes) -> Mapping[str, Any] | None:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None
