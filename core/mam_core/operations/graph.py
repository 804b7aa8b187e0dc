"""Which job comes after which, in layers that can be drawn.

Only jobs that have a parent or a child are in it; a parent that is not in the registry any
more keeps its place as one that is gone. Groups may be folded into one node each, which is
what makes a graph of thousands readable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from mam_core.records import Status
from mam_core.summaries import Summary


class Node(NamedTuple):
    """One job, or a folded group."""

    name: str  #: the job's id; of a group, `of_group` and its name
    layer: int  #: every parent stands in an earlier one, unless `in_circle`
    place: int  #: within its layer, near its parents
    parents: tuple[str, ...]
    children: tuple[str, ...]
    statuses: Mapping[Status | None, int]  #: how many jobs stand how; None: not in the registry
    group: str = ""
    is_folded: bool = False
    in_circle: bool = False  #: of records that somebody edited, or of groups folded together

    @property
    def status(self) -> Status | None:
        """Of a single job."""
        return next(iter(self.statuses), None)

    @property
    def is_gone(self) -> bool:
        """A parent that was cleaned away."""
        return None in self.statuses


class Graph(NamedTuple):
    """All nodes by name, and their names by layer and place."""

    nodes: Mapping[str, Node]
    layers: tuple[tuple[str, ...], ...]
    alone: int  #: jobs that come after none and before none

    @property
    def edges(self) -> int:
        return sum(len(node.parents) for node in self.nodes.values())

    def above(self, name: str) -> set[str]:
        """Everything that a node waits for, however far up."""
        return self._reached(name, "parents")

    def below(self, name: str) -> set[str]:
        """Everything that waits for a node."""
        return self._reached(name, "children")

    def _reached(self, name: str, side: str) -> set[str]:
        found: set[str] = set()
        ahead = deque(getattr(self.nodes[name], side) if name in self.nodes else ())
        while ahead:
            one = ahead.popleft()
            if one not in found:
                found.add(one)
                ahead.extend(getattr(self.nodes[one], side))
        found.discard(name)
        return found


def of_group(group: str) -> str:
    """The name of a folded group; no job id has such a letter."""
    return f"[{group}]"


def graph(jobs: Iterable[Summary], folded: Collection[str] = ()) -> Graph:
    """The graph of all jobs, with these groups as one node each."""
    known = {job.job_id: job for job in jobs}
    children: dict[str, list[str]] = {}
    parents: dict[str, list[str]] = {}
    for job in known.values():
        for parent in dict.fromkeys(job.parents.split()):
            if parent != job.job_id:
                parents.setdefault(job.job_id, []).append(parent)
                children.setdefault(parent, []).append(job.job_id)
    linked = parents.keys() | children.keys()
    if folded:
        named = {name: _shown_as(known.get(name), name, folded) for name in linked}
        parents = _joined(parents, named)
        children = _joined(children, named)
    else:
        named = dict(zip(linked, linked, strict=True))
    members: dict[str, dict[Status | None, int]] = {}
    groups: dict[str, str] = {}
    for name in _by_registration(linked, known):
        found = known.get(name)
        statuses = members.setdefault(named[name], {})
        status = found.status if found else None
        statuses[status] = statuses.get(status, 0) + 1
        groups.setdefault(named[name], (found.group or "") if found else "")
    depth, circle = _depths(members, parents, children)
    layers = _arranged(members, depth, parents)
    nodes = {
        name: Node(
            name,
            depth[name],
            place,
            tuple(parents.get(name, ())),
            tuple(children.get(name, ())),
            members[name],
            groups[name],
            name not in known and name not in linked,
            name in circle,
        )
        for layer in layers
        for place, name in enumerate(layer)
    }
    return Graph(nodes, layers, len(known) - len(known.keys() & linked))


def _shown_as(job: Summary | None, name: str, folded: Collection[str]) -> str:
    return of_group(job.group) if job is not None and job.group in folded and job.group else name


def _joined(links: Mapping[str, list[str]], named: Mapping[str, str]) -> dict[str, list[str]]:
    """The links between what is shown; those inside one node are not."""
    joined: dict[str, dict[str, None]] = {}
    for name, others in links.items():
        own = joined.setdefault(named[name], {})
        own.update(dict.fromkeys(named[other] for other in others))
        own.pop(named[name], None)
    return {name: list(others) for name, others in joined.items() if others}


def _depths(
    names: Iterable[str], parents: Mapping[str, list[str]], children: Mapping[str, list[str]]
) -> tuple[dict[str, int], set[str]]:
    """Each one below all of its parents; where they go in a circle, one is let through."""
    open_parents = {name: len(parents.get(name, ())) for name in names}
    depth = dict.fromkeys(open_parents, 0)
    ready = deque(name for name, count in open_parents.items() if not count)
    waiting = {name: None for name, count in open_parents.items() if count}
    circle: set[str] = set()
    while ready or waiting:
        if not ready:
            stuck = next(iter(waiting))
            circle.add(stuck)
            ready.append(stuck)
            del waiting[stuck]
        name = ready.popleft()
        for child in children.get(name, ()):
            if child not in waiting:
                continue
            depth[child] = max(depth[child], depth[name] + 1)
            open_parents[child] -= 1
            if not open_parents[child]:
                del waiting[child]
                ready.append(child)
    return depth, circle


def _arranged(
    names: Iterable[str], depth: Mapping[str, int], parents: Mapping[str, list[str]]
) -> tuple[tuple[str, ...], ...]:
    """Each layer by the middle of its parents, so that few lines cross; else by registration."""
    layers: list[list[str]] = []
    for name in names:
        while len(layers) <= depth[name]:
            layers.append([])
        layers[depth[name]].append(name)
    places: dict[str, float] = {}
    for layer in layers:
        middles = {
            name: sum(found) / len(found)
            for name in layer
            if (found := [places[one] for one in parents.get(name, ()) if one in places])
        }
        layer.sort(key=lambda name: middles.get(name, 0.0))
        places.update((name, float(place)) for place, name in enumerate(layer))
    return tuple(map(tuple, layers))


def _by_registration(names: Iterable[str], known: Mapping[str, Summary]) -> list[str]:
    """Those that are gone were there first."""
    ordered = sorted(
        (job.order if (job := known.get(name)) is not None else 0, name) for name in names
    )
    return [name for _, name in ordered]
