"""``mam node``: take a host out of the work, or back into it."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.terminal import say
from mam_core.operations.nodes import check_known, drain, undrain


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "act", choices=("drain", "resume"), help="claim no more, or go on where that was said"
    )
    parser.add_argument("node", metavar="NODE", help="its name, as `mam nodes` shows it")
    parser.add_argument("--why", default="", metavar="TEXT", help="shown to who asks why")


def run(args: argparse.Namespace, context: Context) -> int:
    if args.act == "drain":
        check_known(context.registry, context.registry_path, context.settings, args.node)
        say(drain(context.registry, args.node, args.why))
    else:
        say(undrain(context.registry, args.node))
    return 0
