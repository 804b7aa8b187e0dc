"""Gathers the facts behind the answer to "why is this job not running".

Pauses, full groups, and who serves which label: the sessions on record, the workers among the
processes of this host, and where hosts share a registry what the others announce. A caller
that asks repeatedly keeps one `Services`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from mam_core.board.why import BlockReasons, Evidence, Pair, Served
from mam_core.claims import is_closed, slots_of
from mam_core.config import Config
from mam_core.errors import MamError, RegistryMissing
from mam_core.locations import is_inside_attempt
from mam_core.nodes.hearing import Heard, Hearing
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.sessions import SessionFolder
from mam_core.stores.base import Gate, GateKind, Gates
from mam_core.summaries import Summary
from mam_core.work.processes import HAS_PROC, pids

if TYPE_CHECKING:
    from mam_core.presence import Announced, Announcements

__all__ = [
    "Heard",
    "Hosts",
    "HostsHeard",
    "Services",
    "block_reasons",
    "everything_paused",
    "gather",
    "held_back",
    "services_of",
]

#: The workers of all hosts of a registry; None: they cannot be heard.
Hosts = Callable[[Registry], Sequence[Heard] | None]

#: The command that submitted or dispatched such a job serves its label itself.
_SERVED_BY_THEIR_OWN = ("submit:", "dispatch:")
#: Between two looks at all processes: they cost some hundredths of a second.
_SCAN_SEC = 4.0
#: How long a broker may take to answer.
_ANSWER_SEC = 3.0
#: A word this old is not believed, whatever the broker says.
_OLD_SEC = 900.0
_JOB_GATES = (GateKind.ALL, GateKind.AGENT, GateKind.GROUP)

#: Label and agents; None stands for those that a worker serves which names none.
_Server = tuple[str, frozenset[str] | None]


class Services:
    """Who serves what. For one thread at a time."""

    def __init__(
        self, registry: Registry, registry_path: str, config: Config, hosts: Hosts | None = None
    ) -> None:
        """`hosts` is asked only where several share the registry, and nobody here serves."""
        self._registry = registry
        self._path = registry_path
        self._config = config
        self._hosts = hosts
        self._folder = SessionFolder(registry_path)
        self._announcements: Announcements | None = None
        #: Whether to find out which agents are unknown or not installed here: a look for each.
        self.names_programs = True
        self._scanned: tuple[float, list[tuple[str, _Server]]] | None = None
        self._stopped: dict[int, _Server] = {}  #: workers that do nothing until they go on, by pid

    def of(
        self, pairs: Iterable[Pair], drained: frozenset[str] = frozenset()
    ) -> dict[Pair, Served]:
        """`drained` are the hosts that are to claim nothing."""
        wanted = {pair for pair in pairs if not pair[0].startswith(_SERVED_BY_THEIR_OWN)}
        if not wanted:
            return {}
        servers, names, unsure = self._sessions()
        node = self._registry.node
        if any(not self._takes(servers, pair) for pair in wanted):
            servers += [server for name, server in self._workers() if name not in names]
        sees_all = HAS_PROC and not is_inside_attempt()
        closed = node if node in drained else ""
        idle, servers = (servers, []) if closed else ([], servers)
        missing = {pair for pair in wanted if not self._takes(servers, pair)}
        if missing and self._registry.store.secret is not None:
            heard = self._hosts(self._registry) if self._hosts is not None else None
            sees_all = sees_all and heard is not None
            servers += self._elsewhere(heard or (), drained)
        return {
            pair: self._judged(pair, servers, idle, closed)
            if sees_all and pair[0] not in unsure
            else Served(True if self._takes(servers, pair) else None)
            for pair in wanted
        }

    def _judged(
        self, pair: Pair, servers: Sequence[_Server], idle: Sequence[_Server], closed: str
    ) -> Served:
        """`closed` is this host, where it is drained, and `idle` are its own workers then."""
        if self._takes(servers, pair):
            return Served(True)
        label, agent = pair
        if self._takes(idle, pair):
            return Served(False, drained=closed)
        for pid, server in self._stopped.items():
            if self._takes([server], pair):
                return Served(False, stopped=pid, closed=closed)
        others: set[str] = set()
        for name, agents in (*servers, *idle):
            if name == label:
                others |= agents if agents is not None else {self._usual}
        found = Served(False, tuple(sorted(others)), closed=closed)
        return self._of_the_agent(agent, found) if self.names_programs else found

    def _takes(self, servers: Iterable[_Server], pair: Pair) -> bool:
        label, agent = pair
        return any(
            name == label and (agent in agents if agents is not None else self._by_default(agent))
            for name, agents in servers
        )

    def _by_default(self, agent: str) -> bool:
        """A profile that we do not know may be in that worker's own settings."""
        from mam_core.agents.profiles import profile_names, served_by_default

        config = self._config
        return agent in served_by_default(config) or agent not in profile_names(config)

    @property
    def _usual(self) -> str:
        from mam_core.agents.profiles import profile_names, served_by_default

        named = set(profile_names(self._config)) - set(served_by_default(self._config))
        return f"every agent but {', '.join(sorted(named))}"

    def _of_the_agent(self, agent: str, found: Served) -> Served:
        """With the reason why it cannot be started from here, if there is one."""
        from mam_core.agents.profiles import find_program, lacking, profile_names, profile_of
        from mam_core.near_names import nearest

        found = found._replace(is_shared=self._registry.store.secret is not None)
        names = profile_names(self._config)
        if agent not in names:
            return found._replace(is_unknown=True, near=nearest(agent, names))
        with suppress(MamError):  # its settings are wrong, which the doctor says
            profile = profile_of(self._config, agent)
            environ = {**os.environ, **profile.env}
            if not find_program(profile, environ.get("PATH", os.defpath)):
                return found._replace(missing=profile.program)
            return found._replace(unset=tuple(lacking(profile, environ)))
        return found

    # -- where it is seen ------------------------------------------------------------------------

    def _sessions(self) -> tuple[list[_Server], set[str], set[str]]:
        """The servers, the names of all sessions, and the labels of those of other hosts."""
        sessions, _ = self._folder.all()
        node = self._registry.node
        workers = self._announced([one.name for one in sessions if one.node == node])
        found: list[_Server] = []
        unsure = set()
        for one in sessions:
            if one.stopped_at is not None:
                continue
            worker = workers.get(one.name)
            if one.node != node:
                unsure.add(one.label)
            elif worker is not None and (worker.is_out_of_view or worker.mark.is_alive):
                found.append((one.label, frozenset({one.agent})))
        return found, {one.name for one in sessions}, unsure

    def _announced(self, names: Sequence[str]) -> Mapping[str, Announced]:
        if not names:
            return {}
        if self._announcements is None:
            from mam_core.presence import Announcements  # most lists have no session to ask for

            self._announcements = Announcements(self._folder)
        return self._announcements.of(names)

    def _workers(self) -> list[tuple[str, _Server]]:
        """By the name of its session, where it has one. Whose registry cannot be told may serve
        any, so it counts for none."""
        now = time.monotonic()
        if self._scanned is None or now - self._scanned[0] > _SCAN_SEC:
            self._scanned = now, self._scan() if HAS_PROC else []
        return self._scanned[1]

    def _scan(self) -> list[tuple[str, _Server]]:
        from mam_core.file_lock import is_stopped
        from mam_core.work.workers_here import command_of, options_of_worker, registry_of_worker

        here = os.path.realpath(self._path)
        found: list[tuple[str, _Server]] = []
        self._stopped = {}
        for pid in pids():
            options = options_of_worker(command_of(pid))
            label = options and (options.get("--agent-session") or options.get("--label"))
            if options and label and registry_of_worker(pid, options) == here:
                named = frozenset(filter(None, options.get("--agents", "").split(",")))
                server = (label, named or None)
                if is_stopped(str(pid)):
                    self._stopped[pid] = server
                else:
                    found.append((options.get("--session", ""), server))
        return found

    def _elsewhere(self, heard: Iterable[Heard], drained: frozenset[str]) -> list[_Server]:
        now = self._registry.clock.now()
        return [
            (one.status.agent_session, frozenset(one.status.agents))
            for one in heard
            if not one.is_gone and now - one.status.at < _OLD_SEC and one.status.node not in drained
        ]


class HostsHeard:
    """`Hosts` for a console: one connection for all of its threads; `close` it."""

    def __init__(self, registry_path: str, config: Config) -> None:
        self._path = registry_path
        self._config = config
        self._lock = threading.Lock()
        self._opened = ExitStack()
        self._hearing: Hearing | None = None

    def __call__(self, registry: Registry) -> Sequence[Heard] | None:
        from mam_core.wiring import client_for

        with self._lock:
            if self._hearing is None:
                try:
                    client = partial(client_for, self._path, self._config)
                    hearing = Hearing(client, registry.store.realm)
                    self._hearing = self._opened.enter_context(hearing)
                except (MamError, ImportError):
                    return None
                hearing.settle(_ANSWER_SEC)
            return self._hearing.workers() if self._hearing.is_up else None

    def close(self) -> None:
        with self._lock:
            self._hearing = None
            self._opened.close()


def gather(
    registry: Registry, services: Services | None, pairs: Iterable[Pair], groups: Iterable[str]
) -> Evidence:
    """All that is known now. One count a group with slots, whatever the number of jobs."""
    try:
        facts = registry.store.facts()
        gates = facts.gates()
    except RegistryMissing:
        return Evidence(Gates())
    now = registry.clock.now()
    closed = [gate for gate in gates.closed if is_closed(gate, now)]
    limits = {group: slots_of(group, gates, registry.slots) for group in groups}
    counts = {
        group: (facts.running_in(group), limit)
        for group, limit in limits.items()
        if limit is not None
    }
    drained = frozenset(gate.name for gate in closed if gate.kind is GateKind.NODE)
    return Evidence(
        Gates(tuple(gate for gate in closed if gate.kind in _JOB_GATES), gates.slots),
        dict(registry.slots),
        {group: running for group, (running, limit) in counts.items() if running >= limit},
        services.of(pairs, drained) if services is not None else {},
    )


def block_reasons(
    registry: Registry, services: Services | None, jobs: Sequence[Summary]
) -> BlockReasons:
    """For a list that was just read; a job that is not in it is looked up when it is asked for."""
    known: dict[str, Summary | None] = {job.job_id: job for job in jobs}

    def look_up(job_id: str) -> Summary | None:
        if job_id not in known:
            known[job_id] = None
            with suppress(MamError):
                known[job_id] = Summary.of(registry.get(job_id))
        return known[job_id]

    pending = [job for job in jobs if job.status is Status.PENDING]
    pairs = {(job.agent_session, job.agent) for job in pending}
    groups = {job.group for job in pending if job.group is not None}
    blocks = BlockReasons(look_up, gather(registry, services, pairs, groups))
    blocks.load(pending)
    return blocks


def everything_paused(registry: Registry) -> Gate | None:
    """The pause of all jobs, where it is in force."""
    try:
        gate = registry.store.facts().gates().find(GateKind.ALL, "")
    except RegistryMissing:
        return None
    return gate if is_closed(gate, registry.clock.now()) else None


def held_back(
    registry: Registry, services: Services | None, jobs: Sequence[Summary]
) -> frozenset[str]:
    """Those of a list that are blocked; where none is pending, nothing is asked."""
    if not any(job.status is Status.PENDING for job in jobs):
        return frozenset()
    if services is not None:
        services.names_programs = False
    blocks, now = block_reasons(registry, services, jobs), registry.clock.now()
    return frozenset(job.job_id for job in jobs if blocks.is_held(job, now))


def services_of(registry: Registry, registry_path: str, config: Config) -> Services:
    """For a command: other hosts are asked when that is needed, by a connection of its own."""

    def hosts(registry: Registry) -> Sequence[Heard] | None:
        from mam_core.operations.nodes import workers

        heard, trouble = workers(registry, registry_path, config)
        return None if trouble else heard

    return Services(registry, registry_path, config, hosts)
