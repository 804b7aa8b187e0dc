"""``mam report``: a page about jobs for people who were not there."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.parser import many_jobs, many_jobs_option, seconds
from mam_core.cli.terminal import say
from mam_core.cli.usage import UsageError
from mam_core.operations.evidence import services_of
from mam_core.operations.report import DAY_SEC, report


def options(parser: argparse.ArgumentParser) -> None:
    many_jobs_option(parser, optional=True)
    parser.add_argument(
        "--since",
        type=seconds,
        metavar="TIME",
        help="all jobs that something happened to in this time (default: 1d)",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="a new file that ends in .html or .md; it needs no other file and holds no secret",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    job_ids = many_jobs(args, optional=True)
    if job_ids and args.since is not None:
        raise UsageError("name jobs or a time (--since), not both")
    registry, since = context.registry, args.since or DAY_SEC
    registry.notice_all(job_ids)
    services = services_of(registry, context.registry_path, context.settings)
    say(report(registry, args.output, job_ids, since, services=services))
    return 0
