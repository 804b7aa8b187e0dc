"""What `pause` and `resume` are about: a group, an agent, a host, or everything."""

from __future__ import annotations

import argparse

from mam_core.stores.base import GateKind


def gate_options(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--group", metavar="GROUP", help="the jobs of this group")
    which.add_argument("--agent", metavar="AGENT", help="the jobs of this agent")
    which.add_argument("--node", metavar="NODE", help="whatever this host would claim")
    which.add_argument("--all", action="store_true", help="everything")


def gate(args: argparse.Namespace) -> tuple[GateKind, str]:
    if args.group is not None:
        return GateKind.GROUP, args.group
    if args.agent is not None:
        return GateKind.AGENT, args.agent
    if args.node is not None:
        return GateKind.NODE, args.node
    return GateKind.ALL, ""
