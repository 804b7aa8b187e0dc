"""The hosts that work on a registry: who is there, and who is to claim no more."""

from __future__ import annotations

from typing import NamedTuple

from mam_core.claims import is_closed
from mam_core.config import Config
from mam_core.errors import MamError, RegistryMissing
from mam_core.nodes.hearing import Heard, Hearing
from mam_core.nodes.overview import Node, NodeState, nodes_of
from mam_core.operations.pause import pause
from mam_core.operations.resume import resume
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores.base import GateKind, Query
from mam_core.wiring import client_for

__all__ = ["Node", "NodeState", "Overview", "drain", "nodes", "overview", "undrain"]

#: How long a broker may take to answer; the records are shown without it.
PATIENCE_SEC = 3.0


class Overview(NamedTuple):
    """The hosts, and why no worker could be heard; empty when they could."""

    nodes: list[Node]
    trouble: str = ""


def nodes(registry: Registry, registry_path: str, config: Config) -> Overview:
    """One look, by a connection of its own."""
    heard: list[Heard] = []
    trouble = ""
    try:
        with Hearing(lambda: client_for(registry_path, config), registry.store.realm) as hearing:
            if hearing.settle(PATIENCE_SEC):
                heard = hearing.workers()
            else:
                trouble = "the broker does not answer: only what the records say is shown"
    except MamError as problem:
        trouble = f"{problem}: only what the records say is shown"
    return Overview(overview(registry, heard), trouble)


def overview(registry: Registry, heard: list[Heard]) -> list[Node]:
    """What was heard beside what the records say."""
    running: dict[str, list[str]] = {}
    for job in registry.store.find(Query(frozenset({Status.RUNNING})))[0]:
        if job.node:
            running.setdefault(job.node, []).append(job.job_id)
    now = registry.clock.now()
    return nodes_of(heard, running, _drained(registry, now), now)


def drain(registry: Registry, node: str, why: str = "") -> str:
    """The host finishes what it runs and claims no more."""
    pause(registry, GateKind.NODE, node, why)
    return f"node {node} claims no more; what it runs goes on"


def undrain(registry: Registry, node: str) -> str:
    return resume(registry, GateKind.NODE, node).message


def _drained(registry: Registry, now: float) -> list[str]:
    try:
        gates = registry.store.facts().gates()
    except RegistryMissing:
        return []
    return [
        gate.name for gate in gates.closed if gate.kind is GateKind.NODE and is_closed(gate, now)
    ]
