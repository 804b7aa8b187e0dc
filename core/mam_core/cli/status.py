"""``mam status``: print the status of a job, or set it by hand."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.parser import one_job, one_job_option
from mam_core.cli.terminal import put


def options(parser: argparse.ArgumentParser) -> None:
    one_job_option(parser)
    parser.add_argument(
        "--set",
        metavar="STATUS",
        help="set it to this, whatever it is: pending, running, completed, error, cancelled",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    job_id = one_job(args)
    if args.set is None:
        put([context.registry.get(job_id).status])
        return 0
    from mam_core.operations.status import set_status

    set_status(context.registry, job_id, args.set)
    return 0
