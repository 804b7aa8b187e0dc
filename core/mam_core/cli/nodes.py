"""``mam nodes``: the hosts whose workers run jobs, and how they stand."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.sizes import size
from mam_core.cli.terminal import put, put_json_rows, say, table_width, wants_colour
from mam_core.operations.nodes import Node, NodeState, nodes
from mam_core.table import Column, age, render

_COLOURS = {
    NodeState.UP: "\x1b[32m",
    NodeState.DRAINING: "\x1b[35m",
    NodeState.STALE: "\x1b[31m",
    NodeState.SILENT: "\x1b[33m",
}
_MOST_OF_A_NAME = 24


def options(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    parser.epilog = (
        "A host is stale when its workers were cut off or killed: what runs there is not known, "
        "and its jobs come back through their leases. Silent: jobs run there by their records, "
        "or it was drained, and no worker of it was heard. CLOCK: ahead of the database's clock; "
        "unknown where the store has none of its own."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    found, trouble = nodes(context.registry, context.registry_path, context.settings)
    if trouble:
        say(trouble)
    if args.json:
        put_json_rows(node.to_dict() for node in found)
        return 0
    put(render(_columns(found, context.registry.clock.now()), table_width()))
    return 0


def _columns(found: Sequence[Node], now: float) -> list[Column]:
    def cells(of: Callable[[Node], str]) -> list[str]:
        return [of(node) for node in found]

    states = cells(lambda node: _state(node, now))
    colours = {words: _COLOURS[node.state] for words, node in zip(states, found, strict=True)}
    return [
        Column("NODE", cells(lambda node: node.name), flexible=True, most=_MOST_OF_A_NAME),
        Column("STATE", states, colours=colours if wants_colour() else {}),
        Column("WORKERS", cells(lambda node: str(node.workers)), leaves=4),
        Column("RUNS", cells(lambda node: f"{len(node.running)}/{node.slots or '?'}")),
        Column("LOAD", cells(_load), leaves=7),
        Column("MEM FREE", cells(_memory), leaves=6),
        Column("VERSION", cells(lambda node: ", ".join(node.versions) or "-"), leaves=2),
        Column("CLOCK", cells(_clock), leaves=1),
        Column("HEARD", cells(lambda node: _heard(node, now)), leaves=3),
        Column("SESSIONS", cells(lambda node: ", ".join(node.sessions)), flexible=True, leaves=5),
    ]


def _state(node: Node, now: float) -> str:
    since = "" if node.since is None else f" since {age(now - node.since)}"
    return f"{node.state}{since}{', drained' if node.is_drained_unheard else ''}"


def _load(node: Node) -> str:
    return "-" if node.machine is None else f"{node.machine.load:.1f}/{node.machine.cores}"


def _memory(node: Node) -> str:
    return size(node.machine.memory_free if node.machine else None)


def _clock(node: Node) -> str:
    return "unknown" if node.clock_offset is None else f"{node.clock_offset:+.1f}s"


def _heard(node: Node, now: float) -> str:
    return "never" if node.heard_at is None else age(max(0.0, now - node.heard_at))
