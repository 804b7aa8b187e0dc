"""``mam register``: put a job, or a file of jobs, into the registry and print the ids."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mam_core import fields
from mam_core.cli.context import Context
from mam_core.cli.job_fields import (
    flag_of,
    given_fields,
    identity_options,
    job_options,
    named_as_typed,
    open_input,
    settle_not_before,
)
from mam_core.cli.repeats import say_of
from mam_core.cli.strange_names import find_strange_names, warn_of
from mam_core.cli.terminal import Progress, program, put_ids, say
from mam_core.cli.usage import UsageError
from mam_core.operations.bulk import bulk_defaults, lines_of, register_bulk
from mam_core.operations.register import defaults_of, missing, register, with_defaults
from mam_core.registration import Registered

#: Shown what is asked for, before any of it is registered.
_Look = Callable[[Sequence[Mapping[str, Any]]], None]
#: So many keys a line.
_KEYS = 6

_BULK_HELP = """\
a line of --bulk:
  {"prompt": "count the stars", "agent": "claude-code", "agent_session": "tmux:claude"}
its keys:
""" + ",\n".join(
    "  " + ", ".join(fields.SETTABLE[at : at + _KEYS])
    for at in range(0, len(fields.SETTABLE), _KEYS)
)


def options(parser: argparse.ArgumentParser) -> None:
    job_options(parser)
    identity_options(parser)
    parser.add_argument(
        "--bulk",
        metavar="FILE",
        help="one job a line, as JSON objects with the record's keys; - for stdin. "
        "All or none; the other options are for the keys that a line leaves out",
    )
    parser.add_argument(
        "--template",
        default="",
        metavar="NAME",
        help="take what is not said here from [templates.NAME] of mam.toml",
    )
    parser.add_argument(
        "--allow-collision",
        action="store_true",
        help="also when a job that is not over yet is to write the same artifact",
    )
    parser.epilog = _BULK_HELP


def run(args: argparse.Namespace, context: Context) -> int:
    given = given_fields(args)
    strange: list[str] = []

    def look(requests: Sequence[Mapping[str, Any]]) -> None:
        strange.extend(find_strange_names(context, requests))

    with named_as_typed(args):
        notice = settle_not_before(given, context.registry.clock.now())
        if args.bulk is None:
            answers = [_one(args, given, context, look)]
        else:
            answers = _bulk(args, given, context, look)
    put_ids([answer.job_id for answer in answers], "registered")
    for answer in answers:
        _explain(answer)
    if not all(answer.existed for answer in answers):
        warn_of(strange)
    if not answers:
        say(f"nothing to register: {'stdin' if args.bulk == '-' else args.bulk} holds no job")
    elif notice and not all(answer.existed for answer in answers):
        say(notice)
    return 0


def _one(
    args: argparse.Namespace, given: dict[str, Any], context: Context, look: _Look
) -> Registered:
    defaults = defaults_of(context.settings, args.template)
    if lacking := missing({**defaults, **given}):
        flags = ", ".join(map(flag_of, lacking))
        raise UsageError(f"missing: {flags} (see `{program()} register --help`)")
    look([{**defaults, **given}])
    return register(context.registry, given, defaults, allow_collision=args.allow_collision)


def _bulk(
    args: argparse.Namespace, given: dict[str, Any], context: Context, look: _Look
) -> list[Registered]:
    if "prompt" in given or "key" in given:
        raise UsageError("--bulk takes prompts and keys from its lines, not from options")
    fields.checked(given, now=context.registry.clock.now())  # so that no line is blamed for it
    defaults = with_defaults(given, bulk_defaults(context.settings, args.template))
    file = open_input(args.bulk)
    try:
        with Progress("registering") as progress:
            return register_bulk(
                context.registry,
                lines_of(file),
                defaults,
                progress,
                look=look,
                allow_collision=args.allow_collision,
            )
    finally:
        if args.bulk != "-":
            file.close()


def _explain(answer: Registered) -> None:
    if answer.existed:
        words = f"job {answer.job_id} with this key is not over yet: nothing was registered"
        say_of("key", words)
    elif answer.twin:
        words = f"job {answer.job_id} has the label and the prompt of job {answer.twin}"
        say_of("twin", f"warning: {words}, which is not over yet")
