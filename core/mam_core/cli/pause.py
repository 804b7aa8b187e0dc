"""``mam pause``: hold back the claims of a group, an agent or everything."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.gate_options import gate, gate_options
from mam_core.cli.terminal import say
from mam_core.operations.pause import pause


def options(parser: argparse.ArgumentParser) -> None:
    gate_options(parser)
    parser.add_argument("--why", default="", metavar="TEXT", help="shown to who asks why")
    parser.add_argument("--until", metavar="TIME", help="2026-06-19T09:30:00Z or +10m")


def run(args: argparse.Namespace, context: Context) -> int:
    kind, name = gate(args)
    say(pause(context.registry, kind, name, args.why, args.until))
    return 0
