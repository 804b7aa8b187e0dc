"""``mam stop``: end a session, or a pool, when its workers have finished what they run."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.interrupts import until_interrupted
from mam_core.cli.terminal import put, say
from mam_core.operations.stop import stop


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="SESSION", help="a session, or the name of a pool")
    parser.add_argument(
        "--now", action="store_true", help="end what runs, too; its jobs wait for another worker"
    )
    parser.epilog = (
        "Waits until it is over; ^C ends only the waiting. A worktree is removed when nothing "
        "would be lost by that, and stays otherwise."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    with until_interrupted() as wish:
        outcomes = stop(
            context.registry,
            context.registry_path,
            context.settings,
            args.name,
            now=args.now,
            tell=say,
            is_interrupted=wish.is_set,
        )
    put([one.name for one in outcomes if one.is_over])
    for one in outcomes:
        say(one.message)
    if all(one.is_over for one in outcomes):
        return 0
    return wish.exit_code() or 1
