"""``mam wait``: until jobs have ended; prints each id and status as it happens."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.interrupts import until_interrupted
from mam_core.cli.parser import many_jobs, many_jobs_option, seconds
from mam_core.cli.terminal import flush_stdout, put, say
from mam_core.cli.watch import exit_code
from mam_core.operations.ending import Ending
from mam_core.operations.wait import wait


def options(parser: argparse.ArgumentParser) -> None:
    many_jobs_option(parser)
    parser.add_argument(
        "--timeout", type=seconds, metavar="SECONDS", help="end with 2 after so long"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    with until_interrupted() as wish:
        endings = wait(
            context.registry,
            context.registry_path,
            context.settings,
            many_jobs(args),
            timeout=args.timeout,
            end=_end,
            say=say,
            is_stopped=wish.is_set,
            allow_network=context.allow_network_fs,
        )
    return wish.exit_code() if endings.left else exit_code(endings)


def _end(ending: Ending) -> None:
    if ending.is_timeout:
        say(ending.words)
        return
    put([f"{ending.job_id} {ending.status or ending.how}"])
    flush_stdout()
