"""The graph of dependencies as lines: which there are, in which order, and what joins them.

A job stands under the last of its parents, so that whoever reads downwards has read of all
of them; the others are named beside it. Jobs that hang together are a tree here, though
they may have several roots: what moves comes first, what is over is folded away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import NamedTuple

from mam_core.operations.graph import Graph, Node, graph, of_group
from mam_core.records import Status
from mam_core.summaries import Summary

#: Of how many levels the rails are kept; no screen is wide enough for more.
MOST_RAILS = 64
#: How a rail looks at one level: it passes, it is over, it leads here and on, it ends here.
PASSES, IS_OVER, LEADS_ON, ENDS = "|", " ", "+", "`"
_AFTER_IT = {PASSES: PASSES, IS_OVER: IS_OVER, LEADS_ON: PASSES, ENDS: IS_OVER}


class Section(IntEnum):
    """Which part of the picture something stands in; they are drawn in this order."""

    RUNNING = 0
    WAITING = 1
    FINISHED = 2
    HELD = 3  #: comes after none, and is held back by something else


class Kind(StrEnum):
    """What a line is."""

    HEAD = "head"  #: of a section
    FOLD = "fold"  #: a whole tree
    NODE = "node"  #: a job, a parent that is gone, or a folded group


class GraphLine(NamedTuple):
    """One line."""

    kind: Kind
    name: str  #: a node's; of a tree that of its first; of a section its own
    depth: int = 0
    rails: str = ""  #: one sign a level, the innermost last
    parent: str = ""  #: the one that it is drawn under
    others: tuple[str, ...] = ()  #: further parents, that stand elsewhere
    words: str = ""  #: of a section or a tree: what is in it

    @property
    def key(self) -> str:
        """By which it is found again."""
        return f"{self.kind} {self.name}"


class Tree(NamedTuple):
    """Jobs that hang together."""

    name: str  #: of its first node
    section: Section
    lines: tuple[GraphLine, ...]
    jobs: tuple[str, ...]  #: also those of folded groups
    words: str

    @property
    def fold(self) -> GraphLine:
        return GraphLine(Kind.FOLD, self.name, words=self.words)


class Drawing(NamedTuple):
    """All of it, before anything is folded or filtered away."""

    graph: Graph
    trees: tuple[Tree, ...]
    held: Collection[str]  #: in their order, and soon found
    tree_of: Mapping[str, str]  #: the name of each node's tree
    groups: frozenset[str]  #: of those in trees
    held_groups: frozenset[str]  #: of those that are held back


NOTHING = Drawing(Graph({}, (), 0), (), {}, {}, frozenset(), frozenset())


def drawing(
    jobs: Sequence[Summary],
    is_held: Callable[[Summary], bool],
    folded_groups: Collection[str] = (),
) -> Drawing:
    """Of all jobs; `is_held` is asked of the pending ones that come after none."""
    told = graph(jobs, folded_groups)
    known = {job.job_id: job for job in jobs}
    inside = _inside_groups(jobs, folded_groups)
    found = [_tree(names, told, known, inside) for names in _parts(told)]
    found.sort(key=lambda one: (one.section, _age(one, known)))
    linked = {job_id for tree in found for job_id in tree.jobs}
    held = [
        job
        for job in jobs
        if job.status is Status.PENDING and job.job_id not in linked and is_held(job)
    ]
    held.sort(key=lambda job: job.order)
    tree_of = {line.name: tree.name for tree in found for line in tree.lines}
    return Drawing(
        told,
        tuple(found),
        {job.job_id: None for job in held},
        tree_of,
        frozenset(node.group for node in told.nodes.values() if node.group),
        frozenset(job.group for job in held if job.group),
    )


class Folds(NamedTuple):
    """What the operator folded or opened against the usual."""

    shows_finished: bool = False
    turned: frozenset[str] = frozenset()  #: trees

    def hides(self, tree: Tree) -> bool:
        usual = tree.section is Section.FINISHED and not self.shows_finished
        return usual != (tree.name in self.turned)


def lines_of(drawn: Drawing, folds: Folds, fitting: Collection[str] | None) -> list[GraphLine]:
    """What is to be seen; `fitting` are the jobs that a filter lets through, None: all.

    A tree is shown whole when one of its jobs fits: alone, a job would not tell why it waits.
    """
    lines: list[GraphLine] = []
    by_section: dict[Section, list[Tree]] = {}
    for tree in drawn.trees:
        if fitting is None or any(job_id in fitting for job_id in tree.jobs):
            by_section.setdefault(tree.section, []).append(tree)
    for section, trees in by_section.items():
        jobs = sum(len(tree.jobs) for tree in trees)
        words = f"{_many(len(trees), 'tree')}, {_many(jobs, 'job')}"
        lines.append(GraphLine(Kind.HEAD, section.name, words=f"{section.name.lower()}: {words}"))
        for tree in trees:
            lines.extend((tree.fold,) if folds.hides(tree) else tree.lines)
    held = [job_id for job_id in drawn.held if fitting is None or job_id in fitting]
    if held:
        words = f"held back: {_many(len(held), 'job')} that come{'s' * (len(held) == 1)} after none"
        lines.append(GraphLine(Kind.HEAD, Section.HELD.name, words=words))
        lines.extend(GraphLine(Kind.NODE, job_id) for job_id in held)
    return lines


# -- trees ---------------------------------------------------------------------------------------


def _parts(told: Graph) -> list[list[str]]:
    """The names that hang together, each part in the order of its layers."""
    part_of: dict[str, int] = {}
    parts: list[list[str]] = []
    for layer in told.layers:
        for name in layer:
            if name not in part_of:
                _mark(name, len(parts), part_of, told.nodes)
                parts.append([])
            parts[part_of[name]].append(name)
    return parts


def _mark(name: str, part: int, part_of: dict[str, int], nodes: Mapping[str, Node]) -> None:
    part_of[name] = part
    ahead = [name]
    while ahead:
        node = nodes[ahead.pop()]
        for other in (*node.parents, *node.children):
            if other not in part_of:
                part_of[other] = part
                ahead.append(other)


def _tree(
    names: Sequence[str],
    told: Graph,
    known: Mapping[str, Summary],
    inside: Mapping[str, Sequence[str]],
) -> Tree:
    jobs = tuple(job_id for name in names for job_id in inside.get(name, (name,)))
    statuses = Counter(status for name in names for status in _statuses(told.nodes[name]))
    if statuses[Status.RUNNING]:
        section = Section.RUNNING
    else:
        section = Section.WAITING if statuses[Status.PENDING] else Section.FINISHED
    counts = ", ".join(
        f"{statuses[status]:,} {status or 'gone'}" for status in (*Status, None) if statuses[status]
    )
    words = f"{_many(len(jobs), 'job')}: {counts}"
    return Tree(names[0], section, tuple(_walked(names, told.nodes)), jobs, words)


def _statuses(node: Node) -> Iterable[Status | None]:
    return Counter(node.statuses).elements()


def _walked(names: Sequence[str], nodes: Mapping[str, Node]) -> list[GraphLine]:
    """Each once, under the last of its parents; who is left over goes in a circle."""
    missing = {name: len(nodes[name].parents) for name in names}
    lines: list[GraphLine] = []
    done: set[str] = set()
    for root in (*(name for name in names if not missing[name]), *names):
        ahead = [GraphLine(Kind.NODE, root)] if root not in done else []
        while ahead:
            line = ahead.pop()
            node = nodes[line.name]
            done.add(line.name)
            others = tuple(one for one in node.parents if one != line.parent)
            lines.append(line._replace(others=others))
            ahead.extend(reversed(_children(line, node, missing, done)))
    return lines


def _children(
    line: GraphLine, node: Node, missing: dict[str, int], done: set[str]
) -> list[GraphLine]:
    """Those whose last parent has just been drawn."""
    ready = []
    for child in node.children:
        missing[child] -= 1
        if not missing[child] and child not in done:
            ready.append(child)
    rails = (line.rails[:-1] + _AFTER_IT[line.rails[-1]]) if line.rails else ""
    rails = rails[1 - MOST_RAILS :]
    return [
        GraphLine(Kind.NODE, child, line.depth + 1, rails + sign, line.name)
        for child in ready
        for sign in (ENDS if child == ready[-1] else LEADS_ON,)
    ]


def _inside_groups(jobs: Iterable[Summary], folded: Collection[str]) -> dict[str, list[str]]:
    """The jobs of each folded group that hang together with others."""
    inside: dict[str, list[str]] = {}
    if not folded:
        return inside
    before = {parent for job in jobs for parent in job.parents.split()}
    for job in jobs:
        if job.group and job.group in folded and (job.parents or job.job_id in before):
            inside.setdefault(of_group(job.group), []).append(job.job_id)
    return inside


def _age(tree: Tree, known: Mapping[str, Summary]) -> int:
    """The oldest first; of those that are over the newest."""
    orders = [known[job_id].order for job_id in tree.jobs if job_id in known]
    if tree.section is Section.FINISHED:
        return -max(orders, default=0)
    return min(orders, default=0)


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
