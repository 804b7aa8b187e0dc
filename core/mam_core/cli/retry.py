"""``mam retry``: make jobs that ended as error or cancelled pending again."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.outcomes import put_outcomes
from mam_core.cli.parser import json_option, many_jobs, many_jobs_option
from mam_core.operations.retry import retry


def options(parser: argparse.ArgumentParser) -> None:
    many_jobs_option(parser)
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    return put_outcomes(retry(context.registry, many_jobs(args)), as_json=args.json)
