"""The columns of the hosts' table. Text from outside leaves here harmless."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mam_core.operations.nodes import Node
from mam_core.safe_text import one_line
from mam_tui.laying import Column, Columns, Look
from mam_tui.moments import span
from mam_tui.nodes.rows import NODE_FACES

_GIB = 1 << 30
_MOST_OF_THE_WORDS = 400
UNKNOWN = "unknown"


def _state(node: Node, look: Look) -> str:
    face = NODE_FACES[node.state]
    since = "" if node.since is None else f" since {span(look.now - node.since)}"
    return f"{face.ascii if look.ascii else face.glyph} {face.word}{since}"


def _runs(node: Node, look: Look) -> str:
    return f"{len(node.running)}/{node.slots or '?'}"


def _free(node: Node, look: Look) -> str:
    return "?" if node.free is None else str(node.free)


def _load(node: Node, look: Look) -> str:
    return "" if node.machine is None else f"{node.machine.load:.1f}/{node.machine.cores}"


def _memory(node: Node, look: Look) -> str:
    """What is free, of all that there is, in GiB."""
    machine = node.machine
    if machine is None or machine.memory_free is None:
        return ""
    whole = f"/{machine.memory_total / _GIB:.0f}" if machine.memory_total else ""
    return f"{machine.memory_free / _GIB:.1f}{whole} GiB"


def _jobs(node: Node, look: Look) -> str:
    more = len(node.running) - 1
    return one_line(node.running[0]) + (f" +{more}" if more > 0 else "") if node.running else ""


def _sessions(node: Node, look: Look) -> str:
    return one_line(" ".join(node.sessions)[:_MOST_OF_THE_WORDS])


def _version(node: Node, look: Look) -> str:
    return one_line(" ".join(node.versions)[:_MOST_OF_THE_WORDS])


def _clock(node: Node, look: Look) -> str:
    if node.machine is None:
        return ""
    return UNKNOWN if node.clock_offset is None else f"{node.clock_offset:+.1f}s"


def _heard(node: Node, look: Look) -> str:
    return "never" if node.heard_at is None else span(look.now - node.heard_at)


def _why(node: Node, look: Look) -> str:
    if not node.is_drained:
        return ""
    return one_line(f"drained: {node.why[:_MOST_OF_THE_WORDS]}") if node.why else "drained"


def _load_key(node: Node) -> float | None:
    return None if node.machine is None else node.machine.load / max(1, node.machine.cores)


_ALL: tuple[Column[Node], ...] = (
    Column("state", "STATE", 18, 100, _state, lambda node: NODE_FACES[node.state].rank),
    Column("name", "NODE", 10, 95, lambda node, _: one_line(node.name), lambda node: node.name),
    Column("runs", "RUNS", 5, 90, _runs, lambda node: len(node.running), right=True),
    Column("free", "FREE", 4, 88, _free, lambda node: node.free, right=True),
    Column("load", "LOAD", 9, 80, _load, _load_key, right=True),
    Column(
        "memory",
        "MEMORY FREE",
        13,
        75,
        _memory,
        lambda node: node.machine.memory_free if node.machine else None,
        right=True,
    ),
    Column("clock", "CLOCK", 8, 65, _clock, lambda node: node.clock_offset, right=True),
    Column("heard", "HEARD", 5, 85, _heard, lambda node: node.heard_at, right=True, by_clock=True),
    Column("version", "VERSION", 9, 50, _version, lambda node: node.versions),
    Column("jobs", "JOBS", 12, 70, _jobs, lambda node: node.running),
    Column("why", "WHY", 20, 72, _why, lambda node: node.why or None),
    Column("sessions", "SESSIONS", 16, 60, _sessions, lambda node: node.sessions),
)
COLUMNS: Mapping[str, Column[Node]] = {column.name: column for column in _ALL}
NODE_COLUMNS = Columns(
    COLUMNS, last="sessions", least_of_the_last=16, or_else="name", seldom_used=("why",)
)


def sort_key(node: Node, name: str) -> Any:
    return COLUMNS[name].key(node)
