"""``mam pick``: claim the next job of a session and print its id."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.parser import label_option, words
from mam_core.cli.terminal import put_ids
from mam_core.cli.usage import UsageError
from mam_core.operations.pick import pick

EXIT_NOTHING = 3


def options(parser: argparse.ArgumentParser) -> None:
    label_option(parser, "the session that claims, for example tmux:claude")
    parser.add_argument(
        "--agents",
        action="append",
        metavar="AGENT",
        help="take only jobs of these agents (a,b or several times; default: any)",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    agents = None if args.agents is None else words(args.agents)
    if agents == []:
        raise UsageError("--agents names no agent")
    job = pick(context.registry, args.agent_session, agents)
    if job is None:
        return EXIT_NOTHING
    put_ids([job.job_id], "claimed")
    return 0
