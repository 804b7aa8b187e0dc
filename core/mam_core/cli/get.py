"""``mam get``: one record as JSON, complete, for its owner."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.parser import one_job, one_job_option
from mam_core.cli.terminal import put_json, put_stored_json, say
from mam_core.operations.get import Foreign, get


def options(parser: argparse.ArgumentParser) -> None:
    one_job_option(parser)
    parser.add_argument("--json", action="store_true", help="the only form there is; for symmetry")


def run(args: argparse.Namespace, context: Context) -> int:
    found = get(context.registry, one_job(args))
    if isinstance(found, Foreign):
        say(f"{found.notice}; it is printed as it is stored")
        put_stored_json([found.stored])
    else:
        put_json(found.to_dict())
    return 0
