"""The hosts that work on a registry: who is there, and who is to claim no more."""

from __future__ import annotations

from contextlib import ExitStack
from typing import NamedTuple

from mam_core.claims import is_closed
from mam_core.config import Config
from mam_core.errors import MamError, RegistryMissing
from mam_core.near_names import unknown
from mam_core.nodes.hearing import Heard, Hearing
from mam_core.nodes.overview import Node, NodeState, nodes_of
from mam_core.operations.known_names import known_names
from mam_core.operations.pause import pause
from mam_core.operations.resume import resume
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores.base import GateKind, NameKind, Query
from mam_core.wiring import client_for

__all__ = [
    "Node",
    "NodeLooks",
    "NodeState",
    "NodesNow",
    "Overview",
    "drain",
    "nodes",
    "overview",
    "undrain",
    "workers",
]

#: How long a broker may take to answer; the records are shown without it.
PATIENCE_SEC = 3.0
_RECORDS = "only what the records say is shown"


class Overview(NamedTuple):
    """The hosts, and why no worker could be heard; empty when they could."""

    nodes: list[Node]
    trouble: str = ""


def nodes(registry: Registry, registry_path: str, config: Config) -> Overview:
    """One look, by a connection of its own."""
    heard, trouble = workers(registry, registry_path, config)
    return Overview(overview(registry, heard), trouble)


def workers(registry: Registry, registry_path: str, config: Config) -> tuple[list[Heard], str]:
    """What is heard of every worker, and why none could be heard; empty when they could."""
    try:
        with Hearing(lambda: client_for(registry_path, config), registry.store.realm) as hearing:
            if hearing.settle(PATIENCE_SEC):
                return hearing.workers(), ""
            return [], f"the broker does not answer: {_RECORDS}"
    except (MamError, ImportError) as problem:  # a worker's host need not have a client
        return [], f"{problem}: {_RECORDS}"


class NodesNow(NamedTuple):
    """What one of many looks found."""

    nodes: list[Node]
    trouble: str = ""  #: why hosts are not heard, or that some of what was heard was dropped
    is_heard: bool = True  #: else they are as they were heard last


class NodeLooks:
    """One connection, for whoever looks again and again; `close` it. For one thread at a time."""

    def __init__(self, registry: Registry, registry_path: str, config: Config) -> None:
        self._registry = registry
        self._registry_path = registry_path
        self._config = config
        self._hearing: Hearing | None = None
        self._realm = ""
        self._opened = ExitStack()

    def look(self) -> NodesNow:
        """Raises `MamError` where the registry cannot be read."""
        try:
            hearing = self._heard()
        except MamError as problem:
            return NodesNow(overview(self._registry, []), f"{problem}: {_RECORDS}", False)
        found = overview(self._registry, hearing.workers())
        if not hearing.is_up:
            words = "are as they were heard last" if hearing.workers() else "cannot be heard"
            return NodesNow(found, f"the broker does not answer: hosts {words}", False)
        dropped = hearing.dropped
        words = f"{dropped} words of hosts made no sense, and were dropped" if dropped else ""
        return NodesNow(found, words)

    def close(self) -> None:
        self._hearing = None
        self._opened.close()

    def _heard(self) -> Hearing:
        realm = self._registry.store.realm
        if self._hearing is None or realm != self._realm:  # another once there is a first job
            self.close()
            hearing = Hearing(lambda: client_for(self._registry_path, self._config), realm)
            self._realm = realm
            self._hearing = self._opened.enter_context(hearing)
            hearing.settle(PATIENCE_SEC)
        return self._hearing


def overview(registry: Registry, heard: list[Heard]) -> list[Node]:
    """What was heard beside what the records say."""
    running: dict[str, list[str]] = {}
    for job in registry.store.find(Query(frozenset({Status.RUNNING})))[0]:
        if job.node:
            running.setdefault(job.node, []).append(job.job_id)
    now = registry.clock.now()
    shared = registry.store.now()
    ahead = 0.0 if shared is None else now - shared
    return nodes_of(heard, running, _drained(registry, now), now, ahead)


class UnknownHost(MamError):
    """No worker, record or setting knows a host of this name."""

    title = "Unknown host"


def check_known(registry: Registry, registry_path: str, config: Config, node: str) -> None:
    """Raises `UnknownHost`. The broker is asked only about a name that nothing here knows."""
    known = known_names(registry, registry_path, config, NameKind.NODE)
    if node in known:
        return
    found = nodes(registry, registry_path, config)
    known |= {one.name for one in found.nodes}
    if node not in known:
        why = f" ({found.trouble})" if found.trouble else ""
        raise UnknownHost(f"{unknown('host', node, known)}{why}")


def drain(registry: Registry, node: str, why: str = "") -> str:
    """The host finishes what it runs and claims no more."""
    pause(registry, GateKind.NODE, node, why)
    return f"node {node} claims no more; what it runs goes on"


def undrain(registry: Registry, node: str) -> str:
    return resume(registry, GateKind.NODE, node).message


def _drained(registry: Registry, now: float) -> dict[str, str]:
    """Why, by host."""
    try:
        gates = registry.store.facts().gates()
    except RegistryMissing:
        return {}
    return {
        gate.name: gate.why
        for gate in gates.closed
        if gate.kind is GateKind.NODE and is_closed(gate, now)
    }
