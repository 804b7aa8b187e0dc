"""What of ``mam.toml`` only the console knows to be right: columns, colours and keys.

A mistake is one sentence with file, line and key, before anything is drawn.
"""

from __future__ import annotations

from collections.abc import Collection

from textual.theme import BUILTIN_THEMES

from mam_core.config import Config
from mam_core.errors import ConfigError
from mam_tui import keymap
from mam_tui.columns import COLUMNS


def check(config: Config) -> dict[str, str]:
    """The operator's own keys by action; raises `ConfigError`."""
    for name in config.console.columns or ():
        _known(config, "columns", "column", name, COLUMNS)
    if config.console.theme:
        _known(config, "theme", "theme", config.console.theme, BUILTIN_THEMES)
    return keymap.read(config)


def _known(config: Config, key: str, kind: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        entry = config.values["console", key]
        there = ", ".join(sorted(known))
        raise ConfigError(
            f"{entry.where}, line {entry.line}: console.{key}: there is no {kind} {name!r:.40}; "
            f"there are {there}"
        )
