"""``mam broadcast``: say one thing to the agents of many sessions."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.outcomes import put_outcomes
from mam_core.cli.talking import receipt_options, text_of, waiting
from mam_core.cli.usage import UsageError
from mam_core.operations.broadcast import broadcast, say_to_all


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="TEXT", help="what is said; - for stdin")
    whom = parser.add_mutually_exclusive_group(required=True)
    whom.add_argument(
        "--sessions",
        metavar="GLOB",
        help="to the running jobs of these, by label or name: 'tmux:claude-*', '*'",
    )
    whom.add_argument(
        "--job", action="append", metavar="ID", help="to this running job; any number of times"
    )
    receipt_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    text = text_of(args.words)
    if text is None:
        raise UsageError("say something: TEXT, or - for stdin")
    with waiting(args) as wait:
        if args.job:
            outcomes = say_to_all(context.registry, args.job, text, wait)
        else:
            outcomes = broadcast(context.registry, args.sessions, text, wait)
    return put_outcomes(outcomes, as_json=args.json)
