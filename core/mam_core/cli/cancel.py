"""``mam cancel``: cancel jobs, or ask their workers to."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.outcomes import put_outcomes
from mam_core.cli.parser import json_option, many_jobs, many_jobs_option
from mam_core.operations.cancel import awaited, cancel

#: Far more than an end takes: the worker may be slow to look.
_WAIT_SEC = 60.0


def options(parser: argparse.ArgumentParser) -> None:
    many_jobs_option(parser)
    parser.add_argument("--why", default="", metavar="TEXT", help="kept in the audit log")
    parser.add_argument(
        "--wait",
        action="store_true",
        help="wait until running jobs have ended, and say what they left behind",
    )
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    outcomes = cancel(context.registry, many_jobs(args), args.why)
    if args.wait:
        outcomes = awaited(context.registry, outcomes, _WAIT_SEC)
    return put_outcomes(outcomes, as_json=args.json)
