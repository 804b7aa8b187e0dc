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
    SILENT = "silent"  #: named by records or a drain, and no worker of it was ever heard


class Node(NamedTuple):
    """One host."""

    name: str
    state: NodeState
    since: float | None  #: stale: the last word of it
    workers: int
    slots: int
    running: tuple[str, ...]  #: by its own words, and where it is silent by the records
    sessions: tuple[str, ...]
    versions: tuple[str, ...]
    machine: Machine | None
    clock_offset: float | None  #: ahead of the store's clock; None: not known
    heard_at: float | None  #: its last word, by the store's clock where the offset is known
    is_drained: bool = False  #: it is to claim no more, whether it can hear that or not

    @property
    def free(self) -> int | None:
        """Slots that would take a job now; None: nobody knows."""
        if self.state is NodeState.DRAINING:
            return 0
        return max(0, self.slots - len(self.running)) if self.state is NodeState.UP else None

    @property
    def is_drained_unheard(self) -> bool:
        """It should drain, and whether it does cannot be seen."""
        return self.is_drained and self.state is not NodeState.DRAINING

    def to_dict(self) -> dict[str, Any]:
        machine = self.machine._asdict() if self.machine else dict.fromkeys(Machine._fields)
        said = self._asdict() | machine
        del said["machine"]
        said |= {"free": self.free, "drained": said.pop("is_drained")}
        for name, moment in (("since", self.since), ("heard_at", self.heard_at)):
            said[name] = None if moment is None else stamp(moment)
        return said


def nodes_of(
    heard: Sequence[Heard],
    running: Mapping[str, Iterable[str]],
    drained: Iterable[str],
    now: float,
) -> list[Node]:
    """`running` are the ids of jobs that run by their records, by host."""
    closed = frozenset(drained)
    by_name: dict[str, list[Heard]] = {name: [] for name in (*running, *closed)}
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
        nothing: tuple[str, ...] = ()
        silent = NodeState.SILENT
        return Node(
            *(name, silent, None, 0, 0, recorded, nothing, nothing, None, None, None, is_closed)
        )
    here = [one.status for one in there if not _is_lost(one, now)]
    known = here or [one.status for one in there]
    newest = max(known, key=said_at)
    heard_at = min(now, said_at(newest))
    state = NodeState.STALE
    if here:
        state = NodeState.DRAINING if is_closed else NodeState.UP
    return Node(
        name,
        state,
        None if here else heard_at,
        len(known),
        sum(status.slots for status in known),
        tuple(sorted({job_id for status in known for job_id in status.running})),
        _all(known, lambda status: status.agent_session),
        _all(known, lambda status: status.version),
        newest.machine,
        newest.clock_offset,
        heard_at,
        is_closed,
    )


def said_at(status: WorkerStatus) -> float:
    """By the clock that all share, as far as it is known how far its own is from that."""
    return status.at - (status.clock_offset or 0.0)


def _is_lost(one: Heard, now: float) -> bool:
    return one.is_gone or now - said_at(one.status) > _OLD_SEC


def _all(statuses: Iterable[WorkerStatus], word: Callable[[WorkerStatus], str]) -> tuple[str, ...]:
    return tuple(sorted({word(status) for status in statuses}))
