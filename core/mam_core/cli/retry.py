"""``mam retry``: make jobs that ended as error or cancelled pending again."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.outcomes import put_outcomes
from mam_core.cli.parser import json_option, many_jobs, many_jobs_option
from mam_core.operations.retry import retry


def options(parser: argparse.ArgumentParser) -> None:
    many_jobs_option(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--resume",
        action="store_true",
        help="let the agent go on in the session of its last attempt",
    )
    how.add_argument(
        "--fresh", action="store_true", help="let it begin anew, which it does by default"
    )
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    profiles = context.settings if args.resume else None
    outcomes = retry(context.registry, many_jobs(args), resume_by=profiles)
    return put_outcomes(outcomes, as_json=args.json)
