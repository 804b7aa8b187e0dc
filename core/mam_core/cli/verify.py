"""``mam verify``: check again what jobs promised; a line for each check, and nothing changes."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.outcomes import exit_code
from mam_core.cli.parser import json_option, many_jobs, many_jobs_option
from mam_core.cli.terminal import put, put_json, say
from mam_core.operations.verify import Verified, verify
from mam_core.safe_text import one_line


def options(parser: argparse.ArgumentParser) -> None:
    many_jobs_option(parser)
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    found = verify(context.registry, many_jobs(args))
    if args.json:
        put_json([one.to_dict() for one in found])
    else:
        put(line for one in found for line in _lines(one))
        for one in found:
            say(one.outcome.message)
    return exit_code([one.outcome for one in found])


def _lines(one: Verified) -> list[str]:
    return [
        f"{'ok' if check.passed else 'FAILED':<6}  {one.outcome.job_id}  {one_line(check.words)}"
        for check in one.checks
    ]
