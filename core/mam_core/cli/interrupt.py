"""``mam interrupt``: stop the turn that an agent is in; the agent stays, and its job goes on."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.outcomes import put_outcomes
from mam_core.cli.parser import one_job, one_job_option
from mam_core.cli.talking import receipt_options, waiting
from mam_core.operations.say import interrupt


def options(parser: argparse.ArgumentParser) -> None:
    one_job_option(parser)
    receipt_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    with waiting(args) as wait:
        return put_outcomes([interrupt(context.registry, one_job(args), wait)], as_json=args.json)
