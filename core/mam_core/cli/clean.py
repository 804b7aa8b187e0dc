"""``mam clean``: take ended jobs out of the registry, and back with --undo."""

from __future__ import annotations

import argparse

from mam_core.cli.context import Context
from mam_core.cli.outcomes import exit_code
from mam_core.cli.parser import json_option, many_jobs, many_jobs_option, seconds, words
from mam_core.cli.strange_names import find_strange_filter, warn_of
from mam_core.cli.terminal import put, put_json, say
from mam_core.cli.usage import UsageError
from mam_core.operations.clean import Cleaned, Selection, clean, undo
from mam_core.records import ENDED, Status


def options(parser: argparse.ArgumentParser) -> None:
    many_jobs_option(parser, optional=True)
    parser.add_argument(
        "--status",
        action="append",
        default=[],
        metavar="STATUS",
        help="only those that ended like this: completed, error, cancelled (a,b or several times)",
    )
    parser.add_argument("--group", metavar="GROUP", help="only those of this group")
    parser.add_argument(
        "--older-than",
        type=seconds,
        metavar="AGE",
        help="only those that ended longer ago than this, as in 7d",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would go, move nothing")
    parser.add_argument(
        "--undo",
        nargs="?",
        const="",
        metavar="BATCH",
        help="bring a batch back (default: the newest)",
    )
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.undo is not None:
        return _undo(args, context)
    statuses = frozenset(map(Status.parse, words(args.status)))
    if live := sorted(statuses - ENDED):
        raise UsageError(f"--status {live[0]}: only jobs that have ended can be cleaned")
    selection = Selection(
        tuple(many_jobs(args, optional=True)),
        statuses,
        args.group,
        args.older_than,
    )
    cleaned = clean(context.registry, selection, dry_run=args.dry_run)
    if args.json:
        told = [outcome.to_dict() for outcome in cleaned.outcomes]
        put_json({"batch": cleaned.batch, "dry_run": args.dry_run, "jobs": told})
    else:
        put(cleaned.job_ids)
        _explain(cleaned, dry_run=args.dry_run)
    if not cleaned.job_ids and args.group is not None:
        warn_of(find_strange_filter(context, group=args.group))
    # A job that was named and stays is a refusal; one that merely did not qualify is not.
    return exit_code(cleaned.outcomes) if selection.job_ids else 0


def _explain(cleaned: Cleaned, *, dry_run: bool) -> None:
    for outcome in cleaned.outcomes:
        if not outcome.ok:
            say(outcome.message)
    count = len(cleaned.job_ids)
    jobs = "1 job" if count == 1 else f"{count} jobs"
    if not count:
        say("there is nothing to clean")
    elif dry_run:
        say(f"{jobs} would be cleaned")
    else:
        say(f"{jobs} cleaned; `mam clean --undo {cleaned.batch}` brings them back")


def _undo(args: argparse.Namespace, context: Context) -> int:
    if many_jobs(args, optional=True) or args.status or args.group or args.older_than:
        raise UsageError("--undo brings a whole batch back: it takes no selection")
    if args.dry_run:
        raise UsageError("--undo has no --dry-run")
    restored = undo(context.registry, args.undo or None)
    if args.json:
        put_json({"restored": restored})
    else:
        put(restored)
    if not restored:
        say(f"there is no batch {args.undo}" if args.undo else "there is nothing to bring back")
        return 1
    return 0
