"""``mam pause``: hold back the claims of a group, an agent or everything."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.gate_options import gate, gate_options
from mam_core.cli.strange_names import find_strange_filter, warn_of
from mam_core.cli.terminal import say
from mam_core.operations.pause import pause


def options(parser: argparse.ArgumentParser) -> None:
    gate_options(parser)
    parser.add_argument("--why", default="", metavar="TEXT", help="shown to who asks why")
    parser.add_argument(
        "--until", metavar="TIME", help="2026-06-19T09:30:00Z or +10m; UTC without a zone"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    kind, name = gate(args)
    strange = find_strange_filter(context, group=args.group, agent=args.agent, node=args.node)
    said = pause(context.registry, kind, name, args.why, args.until)
    warn_of(strange)
    say(said)
    return 0
