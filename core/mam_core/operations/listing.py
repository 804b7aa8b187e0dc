"""Which jobs there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mam_core.claims import is_closed, slots_of
from mam_core.errors import RegistryMissing
from mam_core.records import Status, Summary, Unreadable
from mam_core.registry import Registry
from mam_core.stores.base import Gate, GateKind, Query


class Listing(NamedTuple):
    """The jobs that were asked for, in order of registration, and the files that are none."""

    jobs: list[Summary]
    unreadable: list[Unreadable]


class HeldBack(NamedTuple):
    """What nobody can claim now, whoever asks: pauses that are in force, and full groups."""

    everything: Gate | None = None
    agents: frozenset[str] = frozenset()
    groups: frozenset[str | None] = frozenset()

    def holds(self, job: Summary) -> bool:
        """Whether a pending job is to be shown as blocked."""
        return job.status is Status.PENDING and (
            self.everything is not None or job.agent in self.agents or job.group in self.groups
        )


def query(
    statuses: Iterable[str] = (),
    *,
    agent_session: str | None = None,
    group: str | None = None,
    agent: str | None = None,
    text: str | None = None,
) -> Query:
    """A question from words as people give them; raises `BadStatus` for one that is none."""
    wanted = frozenset(map(Status.parse, statuses))
    return Query(wanted, agent_session, group, agent, text)


def listing(registry: Registry, which: Query) -> Listing:
    """Without a lock. A file that cannot be read fits no filter, so it is told with every one."""
    return Listing(*registry.store.find(which))


def held_back(registry: Registry, jobs: Iterable[Summary]) -> HeldBack:
    """What holds `jobs` back. One count a group with slots, whatever the number of jobs."""
    try:
        facts = registry.store.facts()
    except RegistryMissing:
        return HeldBack()
    gates = facts.gates()
    now = registry.clock.now()
    closed = [gate for gate in gates.closed if is_closed(gate, now)]
    waiting = {job.group for job in jobs if job.status is Status.PENDING and job.group is not None}
    limits = {group: slots_of(group, gates, registry.slots) for group in waiting}
    full = {
        group
        for group, limit in limits.items()
        if limit is not None and facts.running_in(group) >= limit
    }
    return HeldBack(
        next((gate for gate in closed if gate.kind is GateKind.ALL), None),
        frozenset(gate.name for gate in closed if gate.kind is GateKind.AGENT),
        frozenset(full | {gate.name for gate in closed if gate.kind is GateKind.GROUP}),
    )


def full_listing(registry: Registry, which: Query) -> Iterator[bytes | Unreadable]:
    """The whole records as JSON, one after the other."""
    return registry.store.stored(which)
