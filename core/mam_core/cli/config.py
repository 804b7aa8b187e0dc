"""``mam config``: every setting and where it comes from; ``mam config path``: the files."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from typing import Any

from mam_core.cli.context import Context
from mam_core.cli.parser import json_option
from mam_core.cli.terminal import is_terminal, put, put_json, say
from mam_core.config import Config, Entry, load
from mam_core.errors import ConfigError
from mam_core.locations import logs_path, nearest_place
from mam_core.operations.skill import in_words, local_rules
from mam_core.table import Column, render

#: Wider than any terminal: a program gets values uncut.
_UNBOUNDED = 1_000_000


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "key",
        nargs="?",
        metavar="KEY",
        help="one setting (broker.host) or a table (broker); `path`: the files in force",
    )
    json_option(parser)
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON schema of mam.toml, for editors"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    if args.schema:  # also where the settings in force are not in order
        from mam_core.config.json_schema import json_schema

        put_json(json_schema())
        return 0
    flags = {"store.registry_dir": context.registry_dir} if context.registry_dir else None
    config = load(context.config, flags=flags)
    for notice in (*config.notices, *map(in_words, local_rules(config))):
        say(notice)
    if args.key == "path":
        return _paths(config, as_json=args.json)
    entries = _chosen(config, args.key)
    if args.json:
        put_json([_plain(entry) for entry in entries])
    else:
        width = shutil.get_terminal_size().columns if is_terminal() else _UNBOUNDED
        put(render(_columns(entries), width))
    return 0


def _paths(config: Config, *, as_json: bool) -> int:
    """The stronger file first: its word counts."""
    files = list(reversed(config.files))
    if as_json:
        put_json(files)
    else:
        put(files)
    if not files:
        say("there is no mam.toml here, above, or in the XDG folder: everything is the default")
    return 0


def _chosen(config: Config, key: str | None) -> list[Entry]:
    entries = [_in_force(entry, config) for entry in config.entries()]
    if key is None:
        return entries
    chosen = [entry for entry in entries if entry.key == key or entry.key.startswith(f"{key}.")]
    if not chosen:
        from mam_core.config.schema import TABLES

        if key in TABLES:
            return []
        raise ConfigError(f"there is no setting {key!r} (see `mam config`)")
    return chosen


def _in_force(entry: Entry, config: Config) -> Entry:
    """The two folders that nobody has to name are shown where they are all the same."""
    if entry.value is None and entry.key in ("store.registry_dir", "store.logs_dir"):
        registry = nearest_place(config.registry_dir).path
        path = registry if entry.key == "store.registry_dir" else logs_path(registry)
        return entry._replace(value=path)
    return entry


def _columns(entries: Sequence[Entry]) -> list[Column]:
    return [
        Column("KEY", [entry.key for entry in entries]),
        Column("VALUE", [_shown(entry.value) for entry in entries], flexible=True),
        Column("ORIGIN", [entry.origin for entry in entries], flexible=True),
    ]


def _shown(value: Any) -> str:
    """As the file would have it, near enough to be copied; nothing for what is not set."""
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=list)


def _plain(entry: Entry) -> dict[str, Any]:
    return {
        "key": entry.key,
        "value": entry.value,
        "origin": entry.origin,
        "meaning": entry.meaning,
    }
