"""``mam submit``: register a job, run it, print its events, wait for its end."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

from mam_core.cli.context import Context
from mam_core.cli.interrupts import until_interrupted
from mam_core.cli.job_fields import (
    flag_of,
    given_fields,
    job_options,
    named_as_typed,
    settle_not_before,
)
from mam_core.cli.strange_names import find_strange_names, warn_of
from mam_core.cli.terminal import flush_stdout, program, put, say
from mam_core.cli.usage import UsageError
from mam_core.cli.watch_lines import Lines
from mam_core.cli.work import warnings_on
from mam_core.operations.register import missing
from mam_core.operations.submit import AgentMissing, Plan, check_agent, plan, submit
from mam_core.operations.work import Screen
from mam_core.records import Status
from mam_core.safe_text import safe
from mam_core.sessions import command_to_serve

_EXIT_NOT_COMPLETED = 1
_EXIT_TIMED_OUT = 2


def options(parser: argparse.ArgumentParser) -> None:
    job_options(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be run, and fail where that would; changes nothing",
    )
    parser.epilog = (
        "Without --agent-session the job is run here, and ^C cancels it. With one it is left to "
        "the workers of that session, and followed.\n"
        "exit codes: 0 completed; 1 not; 2 not in time"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    planned = _planned(args, context)
    if args.dry_run:
        put(map(safe, planned.told()))
        check_agent(planned)
        return 0
    try:
        check_agent(planned)
    except AgentMissing:
        put(map(safe, planned.told()))
        raise
    strange = [] if planned.is_own else find_strange_names(context, [planned.request])
    teller = Lines()
    screen = Screen(sys.stderr)
    with until_interrupted() as wish, warnings_on(screen):
        submitted = submit(
            context.registry,
            context.registry_path,
            context.settings,
            planned,
            teller,
            registered=lambda job_id: _say_registered(job_id, planned, strange),
            is_interrupted=wish.is_set,
            screen=screen,
            config_path=context.config,
            allow_network=context.allow_network_fs,
        )
        teller.close(submitted.endings.endings, submitted.endings.tallies)
    put([f"audit: {safe(submitted.audit_folder)}"])
    flush_stdout()
    if wish.is_set():
        if submitted.endings.left:
            say(f"job {submitted.job.job_id} goes on: it is {submitted.job.status}")
        return wish.exit_code()
    if submitted.is_timeout:
        return _EXIT_TIMED_OUT
    return 0 if submitted.job.status is Status.COMPLETED else _EXIT_NOT_COMPLETED


def _say_registered(job_id: str, planned: Plan, strange: Sequence[str]) -> None:
    say(f"job {job_id} is registered{_waits(planned)}")
    warn_of(strange)


def _waits(planned: Plan) -> str:
    """Nobody may be there to take it, and then nothing more is seen of it."""
    if planned.is_own:
        return ""
    command = command_to_serve(planned.label, planned.profile.name)
    return f", for whoever serves {safe(planned.label)} (if nobody does: {safe(command)})"


def _planned(args: argparse.Namespace, context: Context) -> Plan:
    given: dict[str, Any] = given_fields(args)
    known = {**context.settings.job_defaults(), **given, "agent_session": ""}
    if lacking := missing(known):
        flags = ", ".join(map(flag_of, lacking))
        raise UsageError(f"missing: {flags} (see `{program()} submit --help`)")
    with named_as_typed(args):
        now = time.time()
        settle_not_before(given, now)
        return plan(context.settings, given, now)
