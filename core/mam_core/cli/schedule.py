"""``mam schedule``: the jobs that the clock registers."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.terminal import is_terminal, put, put_ids, put_json, say
from mam_core.cli.usage import UsageError
from mam_core.operations import schedule
from mam_core.operations.schedule import pause, resume, standing
from mam_core.operations.schedule_text import remarks, table_lines

#: By act: the options that mean something there.
_TAKEN: dict[str, tuple[str, ...]] = {
    "list": ("json",),
    "run": ("json", "overlap"),
    "pause": ("all", "why", "until"),
    "resume": ("all",),
}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("act", choices=tuple(_TAKEN), help="what to do, see below")
    parser.add_argument("names", nargs="*", metavar="SCHEDULE", help="the schedules")
    parser.add_argument("--all", action="store_true", help="all schedules, also those to come")
    parser.add_argument("--why", default="", metavar="TEXT", help="shown to who asks why")
    parser.add_argument("--until", metavar="TIME", help="2026-06-19T09:30:00Z or +10m")
    parser.add_argument(
        "--overlap", action="store_true", help="also while the last job is not over"
    )
    json_option(parser)
    parser.epilog = (
        "acts:\n"
        "  list               how each stands: when it comes next, its last job, what it missed\n"
        "  run [SCHEDULE …]   register a job of it now; without a name: whatever is due\n"
        "  pause, resume SCHEDULE … | --all\n"
        "They come from [schedules.NAME] of mam.toml, and run while a worker, the console, `mam\n"
        "watch` or `mam relay` does. Where none does, call `mam schedule run` from cron."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    taken = _TAKEN[args.act]
    for name in ("json", "overlap", "all", "why", "until"):
        if name not in taken and getattr(args, name):
            raise UsageError(f"--{name} means nothing to `mam schedule {args.act}`")
    if args.act == "list" and args.names:
        raise UsageError("list shows all schedules: it takes no names")
    return _ACTS[args.act](args, context)


def _list(args: argparse.Namespace, context: Context) -> int:
    found = standing(context.registry, context.settings)
    if args.json:
        put_json([one.to_dict() for one in found])
        return 0
    if not found:
        say("there are no schedules: [schedules.NAME] of mam.toml makes one")
        return 0
    put(table_lines(found, shutil.get_terminal_size().columns if is_terminal() else None))
    for sentence in remarks(found):
        say(sentence)
    return 0


def _run(args: argparse.Namespace, context: Context) -> int:
    found = schedule.run(context.registry, context.settings, args.names, overlap=args.overlap)
    if args.json:
        put_json([one._asdict() | {"missed": [m._asdict() for m in one.missed]} for one in found])
        return 0
    put_ids([one.job_id for one in found if one.job_id], "registered")
    for one in found:
        if one.remark:
            say(one.remark)
    for trouble in filter(None, (one.trouble for one in found)):
        say(trouble)
    if not any(one.job_id or one.trouble for one in found):
        say("nothing is due")
    return 1 if any(one.trouble for one in found) else 0


def _pause(args: argparse.Namespace, context: Context) -> int:
    _check_names(args)
    pause(context.registry, context.settings, args.names, args.why, args.until)
    say(f"{_about(args)} paused: nothing is registered until `mam schedule resume`")
    return 0


def _resume(args: argparse.Namespace, context: Context) -> int:
    _check_names(args)
    if not resume(context.registry, context.settings, args.names):
        say(f"{_about(args)} not paused")
        return 1
    say(f"{_about(args)} on again, from now")
    return 0


def _check_names(args: argparse.Namespace) -> None:
    if bool(args.names) == args.all:
        raise UsageError("name the schedules, or say --all")


def _about(args: argparse.Namespace) -> str:
    if args.all:
        return "all schedules are"
    many = len(args.names) > 1
    return f"schedule{'s' if many else ''} {', '.join(args.names)} {'are' if many else 'is'}"


_ACTS: dict[str, Callable[[argparse.Namespace, Context], int]] = {
    "list": _list,
    "run": _run,
    "pause": _pause,
    "resume": _resume,
}
