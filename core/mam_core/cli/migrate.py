"""``mam migrate``: bring a registry over from another folder, or to or from a database."""

from __future__ import annotations

import argparse
import os

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.terminal import Progress, put, put_json, say
from mam_core.locations import LEGACY_REGISTRY_DIR
from mam_core.operations.migrate import (
    Migration,
    database_url,
    default_source,
    default_target,
    migrate,
    registry_folder,
)
from mam_core.operations.transfer import Transfer, between, transfer
from mam_core.store_urls import StoreKind, StoreUrl


def options(parser: argparse.ArgumentParser) -> None:
    legacy = os.path.dirname(LEGACY_REGISTRY_DIR)
    parser.add_argument(
        "--from",
        dest="source",
        metavar="PLACE",
        help="a folder with jobs and delegate_job_logs, sqlite:PATH or postgresql://…; files: the "
        f"registry's own folder (default: {legacy}; to a database: the registry in use)",
    )
    parser.add_argument(
        "--to",
        dest="target",
        metavar="PLACE",
        help="where it goes, as for --from (default: the store in use)",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would move, move nothing")
    json_option(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    source, target = _ends(args, context)
    if source.kind is StoreKind.FILES and target.kind is StoreKind.FILES:
        return _between_folders(args, context, source.place, target.place)
    config, network = context.settings, context.allow_network_fs
    with (
        between(source, target, context.registry_path, config, network) as (old, new, path),
        Progress("carrying") as progress,
    ):
        done = transfer(old, new, path, dry_run=args.dry_run, progress=progress)
    if args.json:
        put_json(done.to_dict())
    _explain_transfer(done)
    return 1 if done.refused else 0


def _ends(args: argparse.Namespace, context: Context) -> tuple[StoreUrl, StoreUrl]:
    """Where from and where to; a folder is a store of files at its place."""
    url = StoreUrl.parse(context.settings.store.url)
    folder = StoreUrl(
        StoreKind.FILES, default_target(context.registry_dir or context.settings.registry_dir)
    )
    used = folder if url.kind is StoreKind.FILES else url
    target = _named(args.target, folder) if args.target else used
    if args.source:
        return _named(args.source, folder), target
    if args.target and (target.kind is not StoreKind.FILES or target == folder != used):
        return used, target
    return StoreUrl(StoreKind.FILES, default_source()), target


def _named(place: str, folder: StoreUrl) -> StoreUrl:
    """`folder` is the one that ``files`` means, as in ``[store] url``."""
    if place in (StoreKind.FILES, f"{StoreKind.FILES}:"):
        return folder
    return database_url(place) or StoreUrl(StoreKind.FILES, registry_folder(place))


# -- from folder to folder ---------------------------------------------------------------------


def _between_folders(args: argparse.Namespace, context: Context, source: str, target: str) -> int:
    if not args.source and not os.path.isdir(os.path.dirname(source)):
        say(f"there is nothing to move: no {os.path.dirname(LEGACY_REGISTRY_DIR)} here")
        return 0
    done = migrate(
        source,
        target,
        dry_run=args.dry_run,
        allow_network=context.allow_network_fs,
        config=context.settings,
    )
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


# -- from store to store -----------------------------------------------------------------------


def _explain_transfer(done: Transfer) -> None:
    for row in done.unreadable:
        say(f"warning: {row.job_id} is carried, but nobody can read it: {row.error}")
    if done.running:
        some = ", ".join(done.running[:5]) + (" …" if done.running[5:] else "")
        say(f"warning: {_count(len(done.running), 'job')} running without a lease ({some})")
    for name in done.left:
        say(f"{name} belongs to no job and is not carried")
    for why in done.refused.values():
        say(f"not carried: {why}")
    parts = [f"{count} {kind}" for kind, count in sorted(done.carried.items())]
    if done.already:
        parts.append(f"{done.already} that were there already")
    what = ", ".join(parts) or "nothing"
    if done.dry_run:
        say(f"would carry {what} from {done.source} to {done.target}")
        return
    say(f"carried and compared: {what}; content {done.content[:16]}")
    say(
        f"{done.source} is left as it was and still holds everything: run no worker on it. "
        f"The files of attempts stay where they are. `[store] url` makes {done.target} the "
        "registry in use"
    )


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
