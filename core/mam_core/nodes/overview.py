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
    heard_at: (
        float | None
    )  #: its last word, by our clock where its offset is known, else by its own
    is_drained: bool = False  #: it is to claim no more, whether it can hear that or not
    why: str = ""  #: it was drained, in the words of who did that

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

    def drained(self, why: str | None) -> Node:
        """As it stands when it is to claim no more; None: it is not."""
        if why is None:
            return self
        state = NodeState.DRAINING if self.state is NodeState.UP else self.state
        return self._replace(state=state, is_drained=True, why=why)

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
    drained: Mapping[str, str],
    now: float,
    ahead: float = 0.0,
) -> list[Node]:
    """`running` are the ids of jobs that run by their records, `drained` why, both by host.

    `ahead` is how far our own clock is from the store's: all times are made ours.
    """
    by_name: dict[str, list[Heard]] = {name: [] for name in (*running, *drained)}
    for one in heard:
        by_name.setdefault(one.status.node, []).append(_in_our_time(one, ahead))
    return [
        _node(name, there, tuple(sorted(running.get(name, ()))), now).drained(drained.get(name))
        for name, there in sorted(by_name.items())
    ]


def _node(name: str, there: Sequence[Heard], recorded: tuple[str, ...], now: float) -> Node:
    if not there:
        return Node(name, NodeState.SILENT, None, 0, 0, recorded, (), (), None, None, None)
    here = [one.status for one in there if not _is_lost(one, now)]
    known = here or [one.status for one in there]
    newest = max(known, key=lambda status: status.at)
    heard_at = min(now, newest.at)
    return Node(
        name,
        NodeState.UP if here else NodeState.STALE,
        None if here else heard_at,
        len(known),
        sum(status.slots for status in known),
        tuple(sorted({job_id for status in known for job_id in status.running})),
        _all(known, lambda status: status.agent_session),
        _all(known, lambda status: status.version),
        newest.machine,
        newest.clock_offset,
        heard_at,
    )


def _in_our_time(one: Heard, ahead: float) -> Heard:
    """Where it is not known how far its clock is from the one that all share, it is believed."""
    status = one.status
    if status.clock_offset is None:
        return one
    return one._replace(status=status._replace(at=status.at - status.clock_offset + ahead))


def _is_lost(one: Heard, now: float) -> bool:
    return one.is_gone or now - one.status.at > _OLD_SEC


def _all(statuses: Iterable[WorkerStatus], word: Callable[[WorkerStatus], str]) -> tuple[str, ...]:
    return tuple(sorted({word(status) for status in statuses}))
