"""``mam spawn``: start a session, or a pool of them, in tmux."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.parser import label_option
from mam_core.cli.terminal import put, say
from mam_core.operations.spawn import Wanted, plan, rehearse, spawn
from mam_core.operations.starting import AgentMissing
from mam_core.safe_text import safe
from mam_core.tmux.facts import TmuxMissing


def options(parser: argparse.ArgumentParser) -> None:
    label_option(parser, "tmux:NAME, whose jobs are run; NAME becomes the name in tmux")
    parser.add_argument(
        "--agent", required=True, metavar="AGENT", help="the profile that runs them"
    )
    parser.add_argument(
        "--count",
        type=int,
        default=1,
        metavar="N",
        help="so many sessions, NAME-1 to NAME-N, for the same jobs (1)",
    )
    parser.add_argument("--workdir", metavar="DIR", help="the folder it works in (default: here)")
    parser.add_argument(
        "--worktree",
        action="store_true",
        help="give each session a git worktree and a branch mam/NAME of its own",
    )
    parser.add_argument(
        "--slots", type=int, default=1, metavar="N", help="jobs at once, if it is headless (1)"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be run, say if it would be refused, and change nothing",
    )
    parser.epilog = "Prints the names of the sessions. What is there already is never doubled."


def run(args: argparse.Namespace, context: Context) -> int:
    wanted = Wanted(
        args.agent_session, args.agent, args.count, args.workdir, args.worktree, args.slots
    )
    planned = plan(
        context.registry_path,
        context.settings,
        wanted,
        config_path=context.config,
        allow_network=context.allow_network_fs,
    )
    if args.dry_run:
        put(map(safe, planned.told()))
        rehearse(planned, context.settings)
        return 0
    try:
        started = spawn(planned, context.settings, say)
    except (TmuxMissing, AgentMissing):
        put(map(safe, planned.told()))
        raise
    put([session.name for session in started])
    for session in started:
        say(f"session {session.name} is up, in {session.workdir}")
    return 0
