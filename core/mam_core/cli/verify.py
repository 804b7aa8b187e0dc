"""``mam verify``: check again what jobs promised; a line for each check, and nothing changes."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.outcomes import exit_code
from mam_core.cli.parser import json_option, many_jobs, many_jobs_option
from mam_core.cli.terminal import put, put_json, say
from mam_core.cli.usage import UsageError
from mam_core.operations.verify import Verified, verify, verify_files
from mam_core.safe_text import one_line
from mam_core.work.categories import Expected, parse_expected
from mam_core.work.validation import Check


def options(parser: argparse.ArgumentParser) -> None:
    many_jobs_option(parser)
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="COLUMN=VALUE[,VALUE]",
        help="tables (.csv, .tsv, .jsonl, .ndjson) have these values in this column, and no others",
    )
    parser.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="FILE",
        help="with --expect: look into this file or folder, which need not be a job's",
    )
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    expected = parse_expected(args.expect)
    if args.file:
        return _files(args, expected)
    found = verify(context.registry, many_jobs(args), expected)
    if args.json:
        put_json([one.to_dict() for one in found])
    else:
        put(line for one in found for line in _lines(one))
        for one in found:
            say(one.outcome.message)
    return exit_code([one.outcome for one in found])


def _files(args: argparse.Namespace, expected: Expected) -> int:
    """Nothing of a registry is asked, so that a validate command can say it anywhere."""
    if args.ids or args.job:
        raise UsageError("name jobs or files, not both")
    if not expected:
        raise UsageError("--file goes with --expect COLUMN=VALUE")
    checks = verify_files(args.file, expected)
    if args.json:
        put_json([check._asdict() for check in checks])
    else:
        put(map(_line, checks))
    return 0 if all(check.passed for check in checks) else 1


def _lines(one: Verified) -> list[str]:
    return [_line(check, one.outcome.job_id) for check in one.checks]


def _line(check: Check, job_id: str = "") -> str:
    about = f"{job_id}  " if job_id else ""
    return f"{'ok' if check.passed else 'FAILED':<6}  {about}{one_line(check.words)}"
