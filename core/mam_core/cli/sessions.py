"""``mam sessions``: the sessions of this registry, how they stand, and what they are at."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.repeats import say_of
from mam_core.cli.sizes import size
from mam_core.cli.terminal import put, put_json_rows, table_width, wants_colour
from mam_core.clock import parse_stamp
from mam_core.operations.sessions import Seen, SessionState, sessions
from mam_core.sessions import LABEL_PREFIX
from mam_core.table import Column, age, render
from mam_core.wiring import open_tmux

_COLOURS = {
    SessionState.ALIVE: "\x1b[32m",
    SessionState.STOPPING: "\x1b[35m",
    SessionState.STOPPED: "\x1b[90m",
    SessionState.GONE: "\x1b[31m",
    SessionState.DAMAGED: "\x1b[31m",
    SessionState.UNKNOWN: "\x1b[33m",
    SessionState.UNRECORDED: "\x1b[33m",
}
_DEAD = "\x1b[31m"
_MOST_OF_A_NAME = 24
_LEAST_OF_A_FOLDER = 12


def options(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    parser.epilog = "CPU is the time used since the session started; MEM what is resident now."


def run(args: argparse.Namespace, context: Context) -> int:
    server = open_tmux(context.registry_path, context.settings)
    found = sessions(context.registry, context.registry_path, server.panes)
    if args.json:
        put_json_rows(one.to_dict() for one in found)
        return 0
    for one in found:
        if one.note:
            say_of("session", f"session {one.name}: {one.note}")
    put(render(_columns(found, context.registry.clock.now()), table_width()))
    return 0


def _columns(found: Sequence[Seen], now: float) -> list[Column]:
    """Those that are the same for all, or empty for all, are left out."""

    def cells(of: Callable[[Seen], str]) -> list[str]:
        return [of(one) for one in found]

    states = cells(lambda one: one.words)
    colours = {str(state): code for state, code in _COLOURS.items()}
    colours |= {words: _DEAD for words in states if words.startswith(SessionState.DEAD)}
    columns = [
        _name("SESSION", cells(lambda one: one.name)),
        Column("STATE", states, colours=colours if wants_colour() else {}),
        _name("AGENT", cells(lambda one: one.agent), leaves=5),
        Column("MODE", cells(_mode), leaves=2),
        _name("JOB", cells(lambda one: ", ".join(one.jobs) or "-"), leaves=8),
        Column("QUEUE", cells(lambda one: str(one.queued)), leaves=7),
        Column("MEM", cells(lambda one: size(one.memory)), leaves=4),
        Column(
            "CPU", cells(lambda one: "-" if one.cpu_sec is None else age(one.cpu_sec)), leaves=3
        ),
        Column("AGE", cells(lambda one: _age(one, now)), leaves=6),
    ]
    if any(one.label != LABEL_PREFIX + one.name for one in found if one.label):
        columns.insert(1, _name("LABEL", cells(lambda one: one.label), leaves=4))
    folders = cells(lambda one: one.session.workdir if one.session else "")
    columns.append(Column("FOLDER", folders, flexible=True, least=_LEAST_OF_A_FOLDER, leaves=1))
    if any(one.session and one.session.branch for one in found):
        branches = cells(lambda one: (one.session.branch if one.session else "") or "")
        columns.append(_name("WORKTREE", branches, leaves=1))
    return columns


def _name(heading: str, cells: Sequence[str], leaves: int = 0) -> Column:
    return Column(heading, cells, flexible=True, most=_MOST_OF_A_NAME, leaves=leaves)


def _mode(one: Seen) -> str:
    return one.session.mode if one.session else ""


def _age(one: Seen, now: float) -> str:
    try:
        begun = parse_stamp(one.session.created_at) if one.session else None
    except ValueError:
        return "?"
    if begun is None:
        begun = one.pane.created if one.pane else None
    return "-" if begun is None else age(now - begun)
