"""By what pending jobs are held back, in words, for ten thousand of them at once.

The rules are those of a claim (`claims`), asked of what a list knows anyway, so that a
view can say it of every job without reading one record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import isfinite
from types import MappingProxyType

from mam_core.claims import Refusal, Rule, refusals
from mam_core.clock import stamp
from mam_core.errors import RegistryMissing
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.sessions import SessionFolder
from mam_core.stores.base import Gates
from mam_core.summaries import Summary

__all__ = ["Blocking", "Gates", "Refusal", "Rule", "Served", "gates_of", "served_here"]

#: The agents that live sessions serve, by label.
Served = Mapping[str, frozenset[str]]
_NOBODY: Served = MappingProxyType({})


class Blocking:
    """What the claim rules ask of the rest of the registry, from summaries: a `Facts`."""

    def __init__(
        self, jobs: Iterable[Summary], gates: Gates, slots: Mapping[str, int] | None = None
    ) -> None:
        self._gates = gates
        self._slots = slots or {}
        self._statuses: dict[str, Status] = {}
        self._groups: dict[str, str | None] = {}
        self._running: Counter[str | None] = Counter()
        for job in jobs:
            self.put(job)

    # -- what changes ------------------------------------------------------------------------

    def put(self, job: Summary) -> None:
        self.remove(job.job_id)
        self._statuses[job.job_id] = job.status
        self._groups[job.job_id] = job.group
        self._running[job.group] += job.status is Status.RUNNING

    def remove(self, job_id: str) -> None:
        was = self._statuses.pop(job_id, None)
        group = self._groups.pop(job_id, None)
        self._running[group] -= was is Status.RUNNING

    def close_gates(self, gates: Gates) -> None:
        """Pauses, and slots that were changed while running, are these now."""
        self._gates = gates

    # -- what the rules ask ------------------------------------------------------------------

    def status_of(self, job_id: str) -> Status | None:
        return self._statuses.get(job_id)

    def running_in(self, group: str) -> int:
        return self._running[group]

    def gates(self) -> Gates:
        return self._gates

    # -- the answer --------------------------------------------------------------------------

    def of(self, job: Summary, now: float, served: Served = _NOBODY) -> tuple[Refusal, ...]:
        """Everything that keeps a pending job from being claimed; nothing for any other.

        `served` is known of this host only, so it speaks only of labels that have sessions here.
        """
        if job.status is not Status.PENDING:
            return ()
        found = list(refusals(_as_asked(job), self, now=now, slots=self._slots))
        agents = served.get(job.agent_session)
        if agents is not None and job.agent not in agents:
            serve = ", ".join(sorted(agents))
            words = f"the sessions here with label {job.agent_session} serve {serve}"
            found.append(Refusal(Rule.AGENT_NOT_SERVED, f"{words}, not agent {job.agent}"))
        return tuple(found)


def gates_of(registry: Registry) -> Gates:
    """All pauses; none where there is no registry yet."""
    try:
        return registry.store.facts().gates()
    except RegistryMissing:
        return Gates()


def served_here(registry_path: str, node: str) -> dict[str, frozenset[str]]:
    """Which agents the sessions on record serve, by label; those that a person stopped do not."""
    found: dict[str, set[str]] = {}
    for session in SessionFolder(registry_path).all()[0]:
        if session.node == node and session.stopped_at is None:
            found.setdefault(session.label, set()).add(session.agent)
    return {label: frozenset(agents) for label, agents in found.items()}


def _as_asked(job: Summary) -> Job:
    """As much of the record as the rules look at."""
    not_before = None
    if job.not_before is not None:
        not_before = stamp(job.not_before) if isfinite(job.not_before) else "an unreadable moment"
    return Job(
        job.job_id,
        job.status,
        agent=job.agent,
        agent_session=job.agent_session,
        group=job.group,
        not_before=not_before,
        after=tuple(job.parents.split()),
    )
