"""``mam say``: say something to an agent at work."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.outcomes import put_outcomes
from mam_core.cli.talking import job_and_text, job_and_text_options, receipt_options, waiting
from mam_core.cli.usage import UsageError
from mam_core.operations.say import say


def options(parser: argparse.ArgumentParser) -> None:
    job_and_text_options(parser, "what is said; - for stdin")
    receipt_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    job_id, text = job_and_text(args)
    if text is None:
        raise UsageError("say something: TEXT, or - for stdin")
    with waiting(args) as wait:
        return put_outcomes([say(context.registry, job_id, text, wait)], as_json=args.json)
