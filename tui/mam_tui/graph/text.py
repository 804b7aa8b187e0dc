"""What a line of the graph says: its state, its place in the tree, and by what it is held back.

Made for the lines that are seen, and only for them; foreign text leaves here harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from mam_core.board.why import BlockReasons, Help, Why
from mam_core.operations.graph import Graph, Node
from mam_core.records import Status
from mam_core.safe_text import ELLIPSIS, clip, one_line
from mam_core.summaries import Summary
from mam_tui.faces import FACES, Face
from mam_tui.graph.lines import ENDS, IS_OVER, LEADS_ON, PASSES, GraphLine, Kind
from mam_tui.rows import Row

GONE = Face("gone", "∅", "!", "warning", 15)
#: So many of several ids are named on a line.
_NAMED = 3
_NAMED_IN_FULL = 8
_MOST_CHARS = 400
_WIDE = {PASSES: "│  ", IS_OVER: "   ", LEADS_ON: "├─ ", ENDS: "└─ "}
_NARROW = {PASSES: "│ ", IS_OVER: "  ", LEADS_ON: "├ ", ENDS: "└ "}
_ASCII = {"│": "|", "├": "+", "└": "`", "─": "-", ELLIPSIS: "~"}
#: In a narrower place the rails stand closer.
_ROOM_FOR_RAILS = 100
#: For so many cells of width one level is drawn.
_CELLS_A_LEVEL = 15


class Facts(NamedTuple):
    """What is known now of everything that may stand on a line."""

    rows: Mapping[str, Row]
    graph: Graph
    reasons: BlockReasons
    now: float
    key: Callable[[Help], str] = lambda _: ""  #: the operator's, for what helps

    def summary(self, job_id: str) -> Summary | None:
        row = self.rows.get(job_id)
        return row.summary if row is not None else None

    def word(self, job_id: str) -> str:
        """The state that its line says."""
        if (row := self.rows.get(job_id)) is None:
            return "" if job_id in self.graph.nodes and not self._is_gone(job_id) else GONE.word
        return FACES["blocked"].word if self.why(job_id).holds else row.word

    def status(self, job_id: str) -> Status | None:
        summary = self.summary(job_id)
        return summary.status if summary is not None else None

    def _is_gone(self, job_id: str) -> bool:
        return self.graph.nodes[job_id].is_gone

    def why(self, job_id: str) -> Why:
        summary = self.summary(job_id)
        return Why() if summary is None else self.reasons.why(summary, self.now)


class Cells(NamedTuple):
    """One line as it is drawn."""

    line: GraphLine
    face: Face | None = None
    tree: str = ""
    agent: str = ""
    group: str = ""
    words: str = ""
    job_id: str = ""  #: empty: it is no job, or none that there is
    is_aside: bool = False  #: it is only there for those that fit a filter


def cells_of(line: GraphLine, facts: Facts, room: int, step: int, *, ascii_only: bool) -> Cells:
    """`room` is for rails and name, `step` for one level of the rails."""
    if line.kind is Kind.HEAD:
        return Cells(line, words=line.words)
    if line.kind is Kind.FOLD:
        return _fold(line, facts, ascii_only)
    node = facts.graph.nodes.get(line.name)
    is_folded = node is not None and node.is_folded
    name = f"{_folded(ascii_only)} {line.name}" if is_folded else line.name
    tree = in_tree(line, one_line(name), room, step, ascii_only=ascii_only)
    if node is not None and is_folded:
        return Cells(line, _face_of(node), tree, words=_counts(node))
    row = facts.rows.get(line.name)
    if row is None:
        return Cells(line, GONE, tree, words=others(line.others))
    summary = row.summary
    if summary is None:
        trouble = one_line(row.trouble[:_MOST_CHARS])
        return Cells(line, row.face, tree, words=trouble, job_id=line.name)
    why = facts.why(line.name)
    said = [
        one_line(why.short),
        others(_not_open(line.others, facts) if why.holds else line.others),
        one_line(summary.head[:_MOST_CHARS]),
    ]
    return Cells(
        line,
        FACES["blocked"] if why.holds else row.face,
        tree,
        one_line(summary.agent),
        one_line(summary.group or ""),
        _dash(ascii_only).join(filter(None, said)),
        line.name,
    )


def in_tree(line: GraphLine, name: str, room: int, step: int, *, ascii_only: bool) -> str:
    """The rails and the name; of a very deep one only the last rails, and how deep it is."""
    rails = line.rails
    most = max(0, room - len(name))
    deep = ""
    if line.depth * step > most:
        deep = f"{ELLIPSIS}{line.depth} "
        count = max(0, most - len(deep)) // step
        rails = rails[len(rails) - count :] if count else ""
        deep = deep.ljust(most // step * step - count * step)
    signs = _WIDE if step == len(_WIDE[PASSES]) else _NARROW
    drawn = deep + "".join(signs[sign] for sign in rails)
    if ascii_only:
        drawn = "".join(_ASCII.get(sign, sign) for sign in drawn)
    return clip(drawn + name, room)


def step_in(width: int) -> int:
    """How wide one level of the rails is."""
    signs = _WIDE if width >= _ROOM_FOR_RAILS else _NARROW
    return len(signs[PASSES])


def widest(lines: Iterable[GraphLine], width: int) -> int:
    """What rails and names would need; a long chain does not take the room of all the others."""
    step, deepest = step_in(width), max(3, width // _CELLS_A_LEVEL)
    return max(
        (
            min(line.depth, deepest) * step + len(line.name) + 2 * (line.kind is Kind.FOLD)
            for line in lines
            if line.kind is not Kind.HEAD
        ),
        default=0,
    )


def others(names: tuple[str, ...]) -> str:
    """Further parents, that stand elsewhere: ``+2: id id``."""
    return f"+{len(names)}: {_few(names, ' ')}" if names else ""


def full_words(cells: Cells, facts: Facts) -> str:
    """All that there is to say of a line, a paragraph each."""
    line, name = cells.line, one_line(cells.line.name)
    summary, node = facts.summary(cells.job_id), facts.graph.nodes.get(line.name)
    said = []
    if summary is None:
        gone = "it was cleaned away, and whatever comes after it waits for good"
        said.append(f"{name}: {gone if cells.face is GONE else cells.words or line.words}")
    else:
        group = f"group {summary.group}" if summary.group else ""
        session = one_line(f"{summary.agent}  {summary.agent_session}  {group}")
        word = cells.face.word if cells.face is not None else ""
        said.append(f"{name}  {word}  {session}")
        words = facts.why(cells.job_id).sentences(facts.key)
        said.extend(map(one_line, words[:_NAMED_IN_FULL]))
    if node is not None and node.parents:
        said.append(f"after   {_few(_with_states(node.parents, facts), ', ', _NAMED_IN_FULL)}")
    if node is not None and node.children:
        said.append(f"before  {_few(_with_states(node.children, facts), ', ', _NAMED_IN_FULL)}")
    if summary is not None:
        said.append(one_line(summary.head))
    return "\n".join(said)


def _with_states(names: tuple[str, ...], facts: Facts) -> tuple[str, ...]:
    words = (f"{one} {facts.word(one)}".rstrip() for one in names[:_NAMED_IN_FULL])
    return (*words, *names[_NAMED_IN_FULL:])


def _not_open(names: tuple[str, ...], facts: Facts) -> tuple[str, ...]:
    """The others are named by what they hold back."""
    return tuple(one for one in names if facts.status(one) is Status.COMPLETED)


def _few(names: tuple[str, ...], between: str, most: int = _NAMED) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return between.join(map(one_line, names[:most])) + more


def _fold(line: GraphLine, facts: Facts, ascii_only: bool) -> Cells:
    node = facts.graph.nodes.get(line.name)
    summary = facts.summary(line.name)
    said = [line.words, one_line(summary.head[:_MOST_CHARS]) if summary is not None else ""]
    return Cells(
        line,
        _face_of(node) if node is not None else None,
        f"{_folded(ascii_only)} {one_line(line.name)}",
        words=_dash(ascii_only).join(filter(None, said)),
    )


def _face_of(node: Node) -> Face:
    for status in (Status.RUNNING, Status.PENDING, Status.ERROR, Status.CANCELLED):
        if node.statuses.get(status):
            return FACES["queued" if status is Status.PENDING else str(status)]
    return FACES["completed"] if node.statuses.get(Status.COMPLETED) else GONE


def _counts(node: Node) -> str:
    counts = node.statuses.items()
    return "group of " + ", ".join(f"{count:,} {status or 'gone'}" for status, count in counts)


def _folded(ascii_only: bool) -> str:
    return ">" if ascii_only else "▸"


def _dash(ascii_only: bool) -> str:
    return " - " if ascii_only else " — "
