"""``mam group``: the groups and their slots; and the slots of one, changed while all runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from mam_core.acts import Act
from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.sizes import size
from mam_core.cli.strange_names import find_strange_filter, warn_of
from mam_core.cli.terminal import put, put_json, put_json_rows, say, table_width
from mam_core.cli.usage import UsageError
from mam_core.operations.groups import Group, acts_of, group, groups, scaled_by, set_slots
from mam_core.table import Column, render

_MOST_OF_A_NAME = 24
_LAST_ACTS = 20


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", nargs="?", metavar="GROUP", help="only this one")
    change = parser.add_mutually_exclusive_group()
    change.add_argument(
        "--slots", type=int, metavar="N", help="so many of its jobs may run at once from now on"
    )
    change.add_argument(
        "--reset", action="store_true", help="as many as mam.toml says, for every worker's own one"
    )
    change.add_argument("--log", action="store_true", help="what was done about it, newest last")
    parser.add_argument("--why", default="", metavar="TEXT", help="kept with the change")
    parser.add_argument(
        "--force", action="store_true", help="beyond its min and max, or for jobs to come"
    )
    json_option(parser)
    parser.epilog = (
        "Slots hold for all workers on all hosts from their next claim on; what runs goes on."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    if (args.slots is not None or args.reset) and args.group is None:
        raise UsageError("name the group whose slots are to change")
    if args.slots is not None or args.reset:
        slots = None if args.reset else args.slots
        settings, name = context.settings, args.group
        say(set_slots(context.registry, settings, name, slots, why=args.why, force=args.force))
        if args.json:
            put_json(group(context.registry, settings, name).to_dict())
        return 0
    if args.log:
        return _log(args, context)
    if args.group is not None:
        return _one(args, context)
    found = groups(context.registry, context.settings)
    if args.json:
        put_json_rows(one.to_dict() for one in found)
    else:
        put(render(_columns(found), table_width()))
        say(scaled_by(context.registry, context.settings))
    return 0


def _one(args: argparse.Namespace, context: Context) -> int:
    found = group(context.registry, context.settings, args.group)
    done = acts_of(context.registry).of(found.name)
    if args.json:
        put_json({**found.to_dict(), "acts": [act.to_dict() for act in done]})
        return 0
    put(render(_columns([found]), table_width()))
    if done:
        put(render(_act_columns(done[-_LAST_ACTS:]), table_width()))
    return 0


def _log(args: argparse.Namespace, context: Context) -> int:
    paper = acts_of(context.registry)
    done = paper.acts if args.group is None else paper.of(args.group)
    if args.group is not None and not done:
        warn_of(find_strange_filter(context, group=args.group))
    if args.json:
        put_json_rows(act.to_dict() for act in done)
    else:
        put(render(_act_columns(done), table_width()))
    return 0


def _columns(found: Sequence[Group]) -> list[Column]:
    def cells(of: Callable[[Group], str]) -> list[str]:
        return [of(one) for one in found]

    return [
        Column("GROUP", cells(lambda one: one.name), flexible=True, most=_MOST_OF_A_NAME),
        Column("SLOTS", cells(lambda one: _count(one.slots))),
        Column("MIN-MAX", cells(lambda one: one.bounds), leaves=3),
        Column("RUNS", cells(lambda one: str(one.running))),
        Column("WAITS", cells(lambda one: f"{one.waiting}{' paused' if one.is_paused else ''}")),
        Column("MEMORY", cells(lambda one: size(one.memory)), leaves=4),
        Column("CPU", cells(lambda one: "-" if one.cpu is None else f"{one.cpu:g}"), leaves=5),
        Column("ORIGIN", cells(lambda one: one.origin), flexible=True, leaves=2),
        Column("LAST", cells(lambda one: _told(one.last)), flexible=True, leaves=1),
    ]


def _act_columns(done: Sequence[Act]) -> list[Column]:
    def cells(of: Callable[[Act], str]) -> list[str]:
        return [of(act) for act in done]

    return [
        Column("WHEN", cells(lambda act: act.at)),
        Column("GROUP", cells(lambda act: act.group), flexible=True, most=_MOST_OF_A_NAME),
        Column("WHAT", cells(_what)),
        Column("SLOTS", cells(lambda act: f"{_count(act.before)} > {_count(act.after)}")),
        Column("BY", cells(lambda act: act.by), flexible=True, most=_MOST_OF_A_NAME, leaves=2),
        Column("WHY", cells(lambda act: act.why), flexible=True),
        Column("FIGURES", cells(lambda act: figures(act)), flexible=True, leaves=1),
    ]


def _what(act: Act) -> str:
    return str(act.deed) if act.times == 1 else f"{act.deed} x{act.times}"


def _told(act: Act | None) -> str:
    return "-" if act is None else ": ".join(filter(None, (_what(act), act.why)))


def figures(act: Act) -> str:
    return ", ".join(f"{name} {value}" for name, value in act.figures.items())


def _count(slots: int | None) -> str:
    return "any" if slots is None else str(slots)
