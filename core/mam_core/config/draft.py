"""The first ``mam.toml`` of a project: what was chosen, and everything else to be switched on.

A setting that nobody chose stands there as a comment without a blank (``#key = value``),
so that taking one sign away sets it; prose has a blank after the sign.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from mam_core.config.examples import example_of, toml_of
from mam_core.config.kinds import Setting
from mam_core.config.loading import KeyPath
from mam_core.config.schema import TABLES, dotted

#: What the parts of a named table are called in an example.
_NAMES = {
    "agents": "mine",
    "groups": "agents",
    "templates": "review",
    "schedules": "morning",
    "hosts": "big-host",
}
#: A template may hold every field of a job; a few of them make the point.
_FEW = ("agent", "prompt", "expected_artifacts", "validate")
#: Keys that only their user knows, by table; the first is an action of the console.
_OWN_KEYS = {"keys": "cancel", "needs": "MY_AGENT_KEY"}
_ANY_NAME = "example"
#: Where the meanings begin, and where a line ends.
_AT = 34
_WIDE = 100

_HEAD = """\
# The settings of mam for this folder and those below it; written by `mam init`.
# A line such as `#port = 1883` is switched off: it shows the default, or an example (e.g.).
# `mam config` prints what is in force and where it was set; `mam help configuration` explains it.
"""


def draft(chosen: Mapping[KeyPath, Any], *, notes: tuple[str, ...] = (), schema: str = "") -> str:
    """The text of a file in which exactly `chosen` is set; `schema` is the path of its schema."""
    lines = [f"#:schema {schema}"] if schema else []
    lines += _HEAD.splitlines()
    lines += [f"# {note}" for note in notes]
    for name in TABLES:
        lines += ["", *_table(name, chosen)]
    return "\n".join(lines) + "\n"


def _table(name: str, chosen: Mapping[KeyPath, Any]) -> Iterator[str]:
    table = TABLES[name]
    if table.named:
        yield from _named(name, chosen)
        return
    yield f"[{name}]"
    yield f"# {table.meaning}"
    for key, setting in table.settings.items():
        if setting.in_file:
            yield from _lines((name, key), setting, chosen)
    if table.any_key is not None:
        yield from _lines((name, _OWN_KEYS.get(name, _ANY_NAME)), table.any_key, chosen)


def _named(name: str, chosen: Mapping[KeyPath, Any]) -> Iterator[str]:
    """Each part that was chosen; where there is none, one as an example."""
    table = TABLES[name]
    yield f"# {table.meaning}"
    parts = dict.fromkeys(path[1] for path in chosen if path[0] == name)
    for part in parts or [_NAMES.get(name, _ANY_NAME)]:
        yield f"{'' if parts else '#'}[{dotted((name, part))}]"
        for key, setting in table.settings.items():
            if name != "templates" or key in _FEW or (name, part, key) in chosen:
                yield from _lines((name, part, key), setting, chosen)


def _lines(path: KeyPath, setting: Setting, chosen: Mapping[KeyPath, Any]) -> Iterator[str]:
    """The meaning behind the value, or above it where that is too wide."""
    if path in chosen:
        shown, hint = f"{path[-1]} = {toml_of(chosen[path])}", ""
    else:
        example = example_of(path, setting)
        shown, hint = f"#{path[-1]} = {example.toml}", "" if example.is_default else "e.g.; "
    choices = f" ({', '.join(setting.choices)})" if setting.choices else ""
    line = f"{shown:<{_AT}}  # {hint}{setting.meaning}{choices}"
    if len(line) <= _WIDE:
        yield line
    else:
        yield from textwrap.wrap(
            f"{hint}{setting.meaning}{choices}",
            _WIDE,
            initial_indent="# ",
            subsequent_indent="#   ",
            break_on_hyphens=False,
        )
        yield shown
