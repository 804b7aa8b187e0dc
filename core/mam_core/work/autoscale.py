"""Whether a group gets one slot more, one fewer, or stays: the rules, and nothing else.

No clock, no file and no registry here: figures in, a decision with its reason out.
The percentages and the factor are those of the job-safety document; a figure that
is exactly on an edge holds. Fewer slots end nothing: what runs goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mam_core.acts import Deed
from mam_core.machine import Figures
from mam_core.work.capacity import MARGIN

#: Percent. Below both of the first two: one more. Above one of the others: one fewer.
CPU_LOW, MEMORY_LOW = 40, 60
CPU_HIGH, MEMORY_HIGH = 80, 80
#: While a change is watched, the load stays below so much of the cores.
LOAD_SHARE = 0.9
#: A group that scales keeps at least this, unless its `min` says otherwise.
LEAST_SLOTS = 1


class Scaled(NamedTuple):
    """A group, as far as the rules ask."""

    slots: int
    running: int
    low: int | None = None
    high: int | None = None  #: what its settings, or else its size, allow
    memory: int | None = None  #: bytes that one job needs


def ceiling(
    most: int | None,
    running: int,
    hosts: Mapping[str, Figures],
    *,
    memory: int | None,
    cpu: float | None,
) -> int | None:
    """What a group may grow to: its max, else what the sizing formula finds room for on all hosts.

    None when nobody knows. What runs holds its memory already, so that counts beside it.
    """
    if most is not None:
        return most
    by_memory = by_cpu = None
    if memory and hosts:
        free = sum(seen.memory_free for seen in hosts.values())
        by_memory = running + int(free * MARGIN / memory)
    if cpu and hosts:
        by_cpu = int(sum(seen.cores for seen in hosts.values()) * MARGIN / cpu)
    known = [one for one in (by_memory, by_cpu) if one is not None]
    return min(known) if known else None


class Watch(NamedTuple):
    """A change not long ago, and what is seen since."""

    before: int | None  #: slots before the change
    is_ours: bool
    was_up: bool
    trouble: str = ""  #: what must not be; empty while all is well


class Decision(NamedTuple):
    """What becomes of the slots, and why."""

    deed: Deed
    slots: int
    why: str


def rule(cpu: float, memory: float) -> Deed:
    """The document's table, for one host; in percent."""
    if cpu > CPU_HIGH or memory > MEMORY_HIGH:
        return Deed.DOWN
    if cpu < CPU_LOW and memory < MEMORY_LOW:
        return Deed.UP
    return Deed.HOLD


def rule_for(hosts: Mapping[str, Figures]) -> tuple[Deed, str]:
    """For all hosts together, whose slots these are: one that has too much speaks for all, and
    there is room only where each has room. Also the name of the host that decided."""
    if not hosts:
        return Deed.HOLD, ""
    judged = {name: rule(seen.cpu, seen.memory) for name, seen in sorted(hosts.items())}
    for wanted in (Deed.DOWN, Deed.HOLD):
        if found := [name for name, deed in judged.items() if deed is wanted]:
            return wanted, max(found, key=lambda name: max(hosts[name].cpu, hosts[name].memory))
    return Deed.UP, min(hosts, key=lambda name: hosts[name].memory_free)


def trouble_with(hosts: Mapping[str, Figures]) -> str:
    """What must not be while a change is watched; empty when all is well."""
    for name, seen in sorted(hosts.items()):
        most = LOAD_SHARE * seen.cores
        if seen.load >= most:
            return f"the load of {name} is {seen.load:.2f}, not below {most:.2f}"
        if seen.swapped:
            return f"{name} swapped {seen.swapped} pages"
    return ""


def decide(
    group: Scaled, hosts: Mapping[str, Figures], watch: Watch | None, memory_free: int | None
) -> Decision:
    """`memory_free` is what is left on the scarcest host after the steps of other groups."""
    if watch is not None and watch.trouble and watch.is_ours and watch.was_up:
        back = group.slots - 1 if watch.before is None else min(watch.before, group.slots)
        return Decision(Deed.TAKEN_BACK, back, watch.trouble)
    deed, host = rule_for(hosts)
    if deed is Deed.DOWN:
        return _down(group, hosts[host], host)
    if deed is Deed.UP:
        return _up(group, watch, memory_free)
    why = "no host has told its figures" if not hosts else "between the edges"
    return Decision(Deed.HOLD, group.slots, watch.trouble if watch and watch.trouble else why)


def _down(group: Scaled, seen: Figures, host: str) -> Decision:
    low = LEAST_SLOTS if group.low is None else group.low
    over = [f"CPU above {CPU_HIGH} %"] if seen.cpu > CPU_HIGH else []
    over += [f"memory above {MEMORY_HIGH} %"] if seen.memory > MEMORY_HIGH else []
    why = f"{' and '.join(over)} on {host}"
    if group.slots <= low:
        return Decision(Deed.HOLD, group.slots, f"{why}, and it is at its min")
    return Decision(Deed.DOWN, group.slots - 1, why)


def _up(group: Scaled, watch: Watch | None, memory_free: int | None) -> Decision:
    if hindrance := _hindrance(group, watch, memory_free):
        return Decision(Deed.HOLD, group.slots, hindrance)
    return Decision(
        Deed.UP, group.slots + 1, f"CPU below {CPU_LOW} % and memory below {MEMORY_LOW} %"
    )


def _hindrance(group: Scaled, watch: Watch | None, memory_free: int | None) -> str:
    """What stands against a step up; the first that is found."""
    if watch is not None:
        return watch.trouble or "the last change is still watched"
    if group.high is None:
        return "it has no max, and the size of its jobs is not known"
    if group.slots >= group.high:
        return "it is at its max"
    if group.running < group.slots:
        # A slot that nobody takes now would be taken in one leap with others later.
        return "there are free slots"
    if group.memory is not None and memory_free is not None and memory_free < group.memory:
        return "less memory is free than one job needs"
    return ""
