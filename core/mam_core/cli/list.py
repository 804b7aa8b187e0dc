"""``mam list``: the jobs as a table for people or as JSON for programs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice

from mam_core import codec
from mam_core.cli.context import Context
from mam_core.cli.parser import json_option, words
from mam_core.cli.repeats import say_of
from mam_core.cli.terminal import put, put_stored_rows, say, table_width, wants_colour
from mam_core.clock import parse_stamp
from mam_core.locations import DEFAULT_REGISTRY_DIR
from mam_core.operations.evidence import everything_paused, held_back, services_of
from mam_core.operations.listing import (
    Listing,
    full_listing,
    listing,
    query,
    shown_of,
)
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.summaries import Summary, Unreadable
from mam_core.table import Column, age, render

#: Terminal codes; the word always stands beside the colour.
_COLOURS = {
    "pending": "\x1b[33m",
    "blocked": "\x1b[34m",
    "running": "\x1b[36m",
    "running · waiting": "\x1b[33m",
    "running · idle": "\x1b[34m",
    "running · finishing": "\x1b[32m",
    "running · stale": "\x1b[31m",
    "running · lost": "\x1b[31m",
    "cancelling": "\x1b[35m",
    "completed": "\x1b[32m",
    "error": "\x1b[31m",
    "cancelled": "\x1b[90m",
    "unreadable": "\x1b[31m",
}

#: States that a person expects of a running job; "" is of one that ended this moment.
_PLAINLY_RUNNING = ("", "starting", "working")

#: A label as long as a path leaves room for what the job is about.
_MOST_OF_A_NAME = 24
_LEAST_OF_A_PROMPT = 20


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--status",
        action="append",
        default=[],
        metavar="STATUS",
        help="only these: pending, running, completed, error, cancelled (a,b or several times)",
    )
    parser.add_argument(
        "--agent-session", "--label", dest="agent_session", metavar="LABEL", help="only this label"
    )
    parser.add_argument("--group", metavar="GROUP", help="only this group")
    parser.add_argument("--agent", metavar="AGENT", help="only this agent")
    parser.add_argument("--text", metavar="TEXT", help="only those with this in id or prompt")
    json_option(parser)
    parser.epilog = (
        "Reads the registry and asks no tmux, so that it is fast: a job whose pane is gone is "
        "running here until its lease ends. `mam why ID` and `mam sessions` look at the pane."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    which = query(
        words(args.status),
        agent_session=args.agent_session,
        group=args.group,
        agent=args.agent,
        text=args.text,
    )
    if args.json:
        rows = list(islice(records := _records(context.registry, which), 1))
        if not rows:
            _warn_of_names(args, context)
        put_stored_rows(chain(rows, records))
        return 0
    registry = context.registry
    found = listing(registry, which)
    for broken in found.unreadable:
        _warn(broken)
    if which != Query():
        found = Listing(found.jobs, [])
        if not found.jobs:
            _warn_of_names(args, context)
    elif not any(found):
        _hint_at_a_registry_above(context)
    services = services_of(registry, context.registry_path, context.settings)
    held = held_back(registry, services, found.jobs)
    if (gate := everything_paused(registry)) is not None:
        until = f", until {gate.until}" if gate.until else ""
        say(f"everything is paused since {gate.since}{until}")
    states = {job_id: one.state.word for job_id, one in shown_of(registry, found.jobs).items()}
    put(render(_columns(found, held, states, registry.clock.now()), table_width()))
    return 0


def _warn_of_names(args: argparse.Namespace, context: Context) -> None:
    """Nothing is shown: perhaps because a name is mistyped."""
    names = {"agent": args.agent, "label": args.agent_session, "group": args.group}
    if any(name is not None for name in names.values()):
        # Here: most lists have rows, and are spared what this imports.
        from mam_core.cli.strange_names import find_strange_filter, warn_of

        warn_of(find_strange_filter(context, **names))


def _records(registry: Registry, which: Query) -> Iterator[bytes]:
    for row in full_listing(registry, which):
        if isinstance(row, bytes):
            yield row
            continue
        _warn(row)
        if which == Query():  # with a filter, nobody can say whether it fits
            yield codec.dumps(row.to_dict())


def _warn(broken: Unreadable) -> None:
    say_of("unreadable", f"warning: {broken.job_id}.json cannot be read: {broken.error}")


def _hint_at_a_registry_above(context: Context) -> None:
    """Somebody who stands in a folder of their project may well mean the project's registry."""
    if context.names_a_registry:
        return
    here = os.getcwd()
    above = os.path.dirname(here)
    while above != here:
        here, above = above, os.path.dirname(above)
        path = os.path.join(here, DEFAULT_REGISTRY_DIR)
        if os.path.isdir(path):
            say(f"there are no jobs here; --registry-dir can name the registry above, {path}")
            return


def _columns(
    found: Listing, held: Collection[str], states: Mapping[str, str], now: float
) -> list[Column]:
    """The jobs column by column; those that nobody uses are left out."""
    jobs, broken = found
    blank = [""] * len(broken)
    # One turn of the whole table in C, instead of an attribute look-up per cell.
    names = Summary._fields
    of = dict(zip(names, zip(*jobs, strict=True) if jobs else [()] * len(names), strict=True))
    ids = [*of["job_id"], *(row.job_id for row in broken)]
    shown = [
        _running(states.get(job_id, ""), asked) if status is Status.RUNNING else status
        for job_id, status, asked in zip(
            of["job_id"], of["status"], of["cancel_requested_at"], strict=True
        )
    ]
    if held:
        shown = [
            "blocked" if job.job_id in held else word for job, word in zip(jobs, shown, strict=True)
        ]
    since = [
        ended or started or created
        for ended, started, created in zip(
            of["ended_at"], of["started_at"], of["created_at"], strict=True
        )
    ]
    ages = {stamp: _age(stamp, now) for stamp in set(since)}
    columns = [
        Column("JOB ID", ids),
        Column(
            "STATUS",
            [*shown, *("unreadable" for _ in broken)],
            colours=_COLOURS if wants_colour() else {},
        ),
        Column("AGE", [*map(ages.__getitem__, since), *blank]),
        _name("AGENT", [*of["agent"], *blank], leaves=4),
        _name("SESSION", [*of["agent_session"], *blank], leaves=3),
    ]
    if any(of["group"]):
        columns.append(_name("GROUP", [*_texts(of["group"]), *blank], leaves=2))
    if any(attempt > 1 for attempt in of["attempt"]):
        columns.append(Column("TRY", [*map(str, of["attempt"]), *blank]))
    if any(of["reason"]):
        columns.append(Column("REASON", [*_texts(of["reason"]), *blank], leaves=1))
    heads = [*of["head"], *(row.error for row in broken)]
    return [*columns, Column("PROMPT", heads, flexible=True, least=_LEAST_OF_A_PROMPT)]


def _running(state: str, asked_to_end: str | None) -> str:
    """The state beside the status, where it says more."""
    if asked_to_end and state not in ("lost", "stale"):
        return "cancelling"
    return f"running · {state}" if state not in _PLAINLY_RUNNING else "running"


def _name(heading: str, cells: Sequence[str], leaves: int) -> Column:
    return Column(heading, cells, flexible=True, most=_MOST_OF_A_NAME, leaves=leaves)


def _texts(values: Sequence[str | None]) -> list[str]:
    return [value or "" for value in values]


def _age(stamp: str, now: float) -> str:
    """Since when it has been in the state that is shown."""
    try:
        return age(now - parse_stamp(stamp))
    except ValueError:
        return "?"
