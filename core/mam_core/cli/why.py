"""``mam why``: why a job is not claimed, or why it stands where it does."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option, one_job, one_job_option
from mam_core.cli.terminal import put, put_json
from mam_core.operations.why import why
from mam_core.safe_text import safe


def options(parser: argparse.ArgumentParser) -> None:
    one_job_option(parser)
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    explanation = why(context.registry, one_job(args))
    if args.json:
        put_json(explanation.to_dict())
    else:
        put(map(safe, explanation.sentences))
    return 0
