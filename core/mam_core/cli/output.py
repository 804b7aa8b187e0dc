"""``mam output``: the end of what a job printed, or what its agent's screen shows now."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing

from mam_core.cli.context import Context
from mam_core.cli.parser import one_job, one_job_option
from mam_core.cli.terminal import is_terminal, put, say
from mam_core.operations.panes import Panes
from mam_core.operations.seen import Elsewhere, printed, screen
from mam_core.safe_text import safe


def options(parser: argparse.ArgumentParser) -> None:
    one_job_option(parser)
    parser.add_argument(
        "--attempt", type=int, default=0, metavar="N", help="of this attempt; else of the newest"
    )
    parser.add_argument(
        "--screen", action="store_true", help="the agent's pane as it is now, instead"
    )
    parser.epilog = (
        "Byte by byte into a file or a pipe; on a terminal with everything dangerous made visible. "
        "A job of another host is asked of that host."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    registry, path, settings = context.registry, context.registry_path, context.settings
    job = registry.get(one_job(args))
    with closing(Elsewhere(path, settings)) as others:
        if args.screen:
            with closing(Panes(path, settings)) as panes:
                put(map(safe, screen(registry, others, panes, job)))
            return 0
        found = printed(registry, others, job, args.attempt)
    if found.piece.skipped:
        say(f"{found.piece.skipped:,} bytes before this are left out")
    if is_terminal():
        put([safe(found.piece.data.decode("utf-8", "replace").rstrip("\n"), keep="\n\t")])
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(found.piece.data)
    return 0
