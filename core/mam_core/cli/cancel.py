"""``mam cancel``: cancel jobs, or ask their workers to."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.outcomes import put_outcomes
from mam_core.cli.parser import json_option, many_jobs, many_jobs_option
from mam_core.operations.cancel import cancel


def options(parser: argparse.ArgumentParser) -> None:
    many_jobs_option(parser)
    parser.add_argument("--why", default="", metavar="TEXT", help="kept in the audit log")
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    outcomes = cancel(context.registry, many_jobs(args), args.why)
    return put_outcomes(outcomes, as_json=args.json)
