"""``mam register``: put a job, or a file of jobs, into the registry and print the ids."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from mam_core.cli.context import Context
from mam_core.cli.job_fields import given_fields, identity_options, job_options, open_input
from mam_core.cli.terminal import Progress, put, say
from mam_core.cli.usage import UsageError
from mam_core.codec import MAX_RECORD_BYTES
from mam_core.operations.register import register, register_bulk, with_defaults
from mam_core.registration import Registered


def options(parser: argparse.ArgumentParser) -> None:
    job_options(parser)
    identity_options(parser)
    parser.add_argument(
        "--bulk",
        metavar="FILE",
        help="one job a line, as JSON objects with the record's keys; - for stdin. "
        "All or none; the other options are for the keys that a line leaves out",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    given = given_fields(args)
    if args.bulk is None:
        answers = [register(context.registry, given, context.settings.job_defaults())]
    else:
        answers = _bulk(args.bulk, given, context)
    put([answer.job_id for answer in answers])
    for answer in answers:
        _explain(answer)
    return 0


def _bulk(path: str, given: dict[str, Any], context: Context) -> list[Registered]:
    if "prompt" in given or "key" in given:
        raise UsageError("--bulk takes prompts and keys from its lines, not from options")
    defaults = with_defaults(given, context.settings.job_defaults())
    file = open_input(path)
    try:
        with Progress("registering") as progress:
            return register_bulk(context.registry, _lines(file), defaults, progress)
    finally:
        if path != "-":
            file.close()


def _lines(file: Any) -> Iterator[bytes]:
    """Lines of bounded length: a file without line ends must not fill the memory."""
    while line := file.readline(MAX_RECORD_BYTES):
        yield line


def _explain(answer: Registered) -> None:
    if answer.existed:
        say(f"job {answer.job_id} with this key is not over yet: nothing was registered")
    elif answer.twin:
        say(
            f"warning: job {answer.job_id} has the label and the prompt of job {answer.twin}, "
            "which is not over yet"
        )
