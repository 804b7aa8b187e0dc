"""Of many workers' words and the registry's own: which hosts there are, and how they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from mam_core.clock import stamp
from mam_core.machine import Machine
from mam_core.nodes.hearing import Heard
from mam_core.nodes.status import WorkerStatus

#: A word this old is not believed, whatever the broker says: clocks differ, but not by hours.
_OLD_SEC = 900.0


class NodeState(StrEnum):
    """How a host stands, as far as it can be told from here."""

    UP = "up"  #: a worker of it was heard
    DRAINING = "draining"  #: likewise, and it is not to claim any more
    STALE = "stale"  #: its workers were cut off or killed: what it runs nobody knows
    SILENT = "silent"  #: jobs run there by their records, and no worker of it was ever heard


class Node(NamedTuple):
    """One host."""

    name: str
    state: NodeState
    since: float | None  #: stale: the last word of it, by its own clock
    workers: int
    slots: int
    running: tuple[str, ...]  #: by its own words, and where it is silent by the records
    sessions: tuple[str, ...]
    versions: tuple[str, ...]
    machine: Machine | None
    clock_offset: float | None

    def to_dict(self) -> dict[str, Any]:
        machine = self.machine._asdict() if self.machine else dict.fromkeys(Machine._fields)
        said = self._asdict() | machine
        del said["machine"]
        return said | {"since": None if self.since is None else stamp(self.since)}


def nodes_of(
    heard: Sequence[Heard],
    running: Mapping[str, Iterable[str]],
    drained: Iterable[str],
    now: float,
) -> list[Node]:
    """`running` are the ids of jobs that run by their records, by host."""
    closed = frozenset(drained)
    by_name: dict[str, list[Heard]] = {name: [] for name in running}
    for one in heard:
        by_name.setdefault(one.status.node, []).append(one)
    return [
        _node(name, there, tuple(sorted(running.get(name, ()))), name in closed, now)
        for name, there in sorted(by_name.items())
    ]


def _node(
    name: str, there: Sequence[Heard], recorded: tuple[str, ...], is_closed: bool, now: float
) -> Node:
    if not there:
        return Node(name, NodeState.SILENT, None, 0, 0, recorded, (), (), None, None)
    here = [one.status for one in there if not _is_lost(one, now)]
    known = here or [one.status for one in there]
    newest = max(known, key=lambda status: status.at)
    state = NodeState.STALE
    if here:
        state = NodeState.DRAINING if is_closed else NodeState.UP
    return Node(
        name,
        state,
        None if here else newest.at,
        len(known),
        sum(status.slots for status in known),
        tuple(sorted({job_id for status in known for job_id in status.running})),
        _all(known, lambda status: status.agent_session),
        _all(known, lambda status: status.version),
        newest.machine,
        newest.clock_offset,
    )


def _is_lost(one: Heard, now: float) -> bool:
    said_at = one.status.at - (one.status.clock_offset or 0.0)
    return one.is_gone or now - said_at > _OLD_SEC


def _all(statuses: Iterable[WorkerStatus], word: Callable[[WorkerStatus], str]) -> tuple[str, ...]:
    return tuple(sorted({word(status) for status in statuses}))
