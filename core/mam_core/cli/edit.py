"""``mam edit``: change what a pending job asks for."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.job_fields import (
    field_name,
    given_fields,
    job_options,
    named_as_typed,
    settle_not_before,
)
from mam_core.cli.outcomes import put_outcomes
from mam_core.cli.parser import json_option, one_job, one_job_option
from mam_core.cli.strange_names import find_strange_names, warn_of
from mam_core.cli.terminal import say
from mam_core.cli.usage import UsageError
from mam_core.operations.edit import edit


def options(parser: argparse.ArgumentParser) -> None:
    one_job_option(parser)
    job_options(parser)
    parser.add_argument(
        "--clear",
        action="append",
        default=[],
        metavar="FIELD",
        help="put this back to what it is by default; may repeat",
    )
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    job_id = one_job(args)
    given = given_fields(args)
    clear = [field_name(word) for word in args.clear]
    if not given and not clear:
        raise UsageError("say what to change (see `mam edit --help`)")
    with named_as_typed(args):
        notice = settle_not_before(given, context.registry.clock.now())
        strange = find_strange_names(context, [given])
        outcome = edit(context.registry, job_id, given, clear)
    warn_of(strange)
    code = put_outcomes([outcome], as_json=args.json)
    if notice:
        say(notice)
    return code
