"""``mam watch``: a line for each event of the jobs that are followed, until they have ended."""

from __future__ import annotations

import argparse
import os

from mam_core.cli.context import Context
from mam_core.cli.interrupts import until_interrupted
from mam_core.cli.parser import json_option, many_jobs, many_jobs_option, seconds
from mam_core.cli.terminal import say
from mam_core.cli.usage import UsageError
from mam_core.cli.watch_lines import JsonLines, Lines
from mam_core.operations.ending import Limits
from mam_core.operations.endings import Endings
from mam_core.operations.watch import Watch
from mam_core.records import Status

_EXIT_NOT_COMPLETED = 1
_EXIT_TIMED_OUT = 2


def options(parser: argparse.ArgumentParser) -> None:
    many_jobs_option(parser)
    parser.add_argument(
        "--wait-any", action="store_true", help="all jobs that are pending or running now"
    )
    parser.add_argument(
        "--all", action="store_true", help="all jobs there are and will be, until interrupted"
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help="end with 2 after so long (default: each job's own timeout)",
    )
    parser.add_argument(
        "--idle-timeout",
        type=seconds,
        metavar="SECONDS",
        help="end with 2 when nothing is heard for so long (default: each job's own)",
    )
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    ids = many_jobs(args, optional=True)
    if bool(ids) + args.wait_any + args.all != 1:
        raise UsageError("name jobs, or say either --wait-any or --all")
    limits = Limits(args.timeout, args.idle_timeout)
    teller = JsonLines() if args.json else Lines()
    with until_interrupted() as wish:
        watch = Watch(
            context.registry,
            context.registry_path,
            context.settings,
            teller,
            is_stopped=wish.is_set,
            config_path=context.config,
            allow_network=context.allow_network_fs,
        )
        if args.all:
            if not os.path.isdir(path := context.registry_path):
                say(f"there is no registry at {path} yet: its first job is waited for")
            timed_out = watch.everything(limits)
            teller.close({}, {})
            # To be ended is the only end it has; ^C is told apart, as everywhere.
            interrupted = wish.exit_code() if wish.is_keyboard() else 0
            return _EXIT_TIMED_OUT if timed_out else interrupted
        endings = watch.named(ids, limits) if ids else watch.live(limits)
        teller.close(endings.endings, endings.tallies)
    if not endings.endings and not endings.left:
        say("no job is pending or running")
    return wish.exit_code() if endings.left else exit_code(endings)


def exit_code(endings: Endings) -> int:
    """0 all completed, 1 one of them not, 2 one of them not in time."""
    everyone = endings.endings.values()
    if any(one.status is not Status.COMPLETED and not one.is_timeout for one in everyone):
        return _EXIT_NOT_COMPLETED
    return _EXIT_TIMED_OUT if any(one.is_timeout for one in everyone) else 0
