"""``mam export``: jobs into a file of one's own, as a table or as records."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.terminal import say
from mam_core.operations.evidence import services_of
from mam_core.operations.export import export
from mam_core.operations.listing import listing, query


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="*", metavar="ID", help="these jobs (default: all)")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="a new file that ends in .csv, .json or .md; secrets are left out",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    registry = context.registry
    job_ids = args.jobs or [job.job_id for job in listing(registry, query()).jobs]
    services = services_of(registry, context.registry_path, context.settings)
    say(export(registry, job_ids, args.output, services))
    return 0
