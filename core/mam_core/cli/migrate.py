"""``mam migrate``: bring jobs and their histories over from another registry."""

from __future__ import annotations

import argparse
import os

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.terminal import put, put_json, say
from mam_core.locations import LEGACY_REGISTRY_DIR
from mam_core.operations.migrate import Migration, default_target, migrate, registry_folder


def options(parser: argparse.ArgumentParser) -> None:
    legacy = os.path.dirname(LEGACY_REGISTRY_DIR)
    parser.add_argument(
        "--from",
        dest="source",
        metavar="PLACE",
        help=f"the folder that holds jobs and delegate_job_logs (default: {legacy})",
    )
    parser.add_argument(
        "--to", dest="target", metavar="PLACE", help="where they go (default: .mam)"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would move, move nothing")
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    source = registry_folder(args.source or LEGACY_REGISTRY_DIR)
    if args.target:
        target = registry_folder(args.target)
    else:
        target = default_target(context.registry_dir or context.settings.registry_dir)
    if not args.source and not os.path.isdir(os.path.dirname(source)):
        say(f"there is nothing to move: no {os.path.dirname(LEGACY_REGISTRY_DIR)} here")
        return 0
    done = migrate(source, target, dry_run=args.dry_run, allow_network=context.allow_network_fs)
    if args.json:
        put_json(done.to_dict())
    else:
        put(done.jobs)
    _explain(done)
    return 1 if done.refused else 0


def _explain(done: Migration) -> None:
    for row in done.unreadable:
        say(f"warning: {row.job_id}.json is moved, but nobody can read it: {row.error}")
    if done.running:
        say(
            f"warning: {_count(len(done.running), 'job')} running: their agents still know "
            f"{done.source} ({', '.join(done.running[:5])}{' …' if done.running[5:] else ''})"
        )
    for name in done.left:
        say(f"{name} belongs to no job and stays in {os.path.dirname(done.source)}")
    for why in done.refused.values():
        say(f"not moved: {why}")
    if done.is_empty:
        say(f"nothing is left to move in {done.source}")
        return
    parts = [_count(len(done.jobs), "record"), _count(len(done.histories), "history", "histories")]
    if done.others:
        parts.append(_count(len(done.others), "other file"))
    if done.pauses:
        parts.append(_count(done.pauses, "pause"))
    verb = "would move" if done.dry_run else "moved and compared"
    say(f"{', '.join(parts)} {verb} from {done.source} to {done.target}")


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
