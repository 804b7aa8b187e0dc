"""The operator's own keys: ``[keys]`` of ``mam.toml``, as ACTION = "key".

Read at the start, before anything is drawn, and when the file changes. What cannot be (an action
that there is not, a key that no terminal sends, one key for two actions) is a sentence with file
and line.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from types import MappingProxyType

from textual.keys import Keys, _character_to_key

from mam_core.config import Config
from mam_core.errors import ConfigError
from mam_tui.actions import ACTIONS
from mam_tui.views import VIEWS

#: Keys that belong to no action, and what they are for.
FIXED: Mapping[str, str] = MappingProxyType(
    {
        key: words
        for keys, words in (
            ("up down j k", "moves by a line"),
            ("pageup pagedown ctrl+f ctrl+b ctrl+d ctrl+u", "moves by pages"),
            ("home end g G", "goes to the first or the last line"),
            ("left right h l", "moves sidewards"),
            ("shift+up shift+down", "marks a range"),
            ("J K", "goes to the job beside"),
            ("less_than_sign comma greater_than_sign full_stop", "goes to another attempt"),
            ("tab shift+tab", "goes to the next part of the screen"),
            ("ctrl+p", "opens the palette"),
            ("ctrl+q", "quits"),
            ("ctrl+c", "says how to quit"),
        )
        for key in keys.split()
    }
)

#: What terminals send for these is another key.
_SENT_AS = {
    "ctrl+i": "tab",
    "ctrl+m": "enter",
    "ctrl+left_square_bracket": "escape",
    "ctrl+h": "backspace",
}
_NAMED = {key.value for key in Keys if not key.value.startswith("<")} | {
    _character_to_key(sign) for sign in string.punctuation
}
_MODIFIERS = ("ctrl", "alt", "shift")


def read(config: Config) -> dict[str, str]:
    """Keys by action, of the actions that have another one than usual; raises `ConfigError`."""
    chosen: dict[str, str] = {}
    for (table, *rest), entry in config.values.items():
        if table != "keys":
            continue
        name, usual = rest[0], defaults()
        if name not in usual:
            raise _wrong(config, name, _unknown(name, usual))
        key = normal(entry.value)
        if key is None:
            raise _wrong(config, name, f"is no key: {entry.value!r:.40}; keys are {_EXAMPLES}")
        if key in _SENT_AS:
            raise _wrong(config, name, f"cannot be {key}: terminals send {_SENT_AS[key]} for it")
        if key in FIXED:
            raise _wrong(config, name, f"cannot be {entry.value}: that {FIXED[key]}")
        chosen[name] = key
    _check_shared(config, chosen)
    return chosen


def defaults() -> dict[str, str]:
    """The usual key of everything that can have another."""
    return {
        **{action.name: action.key for action in ACTIONS.values()},
        **{f"view-{view.name}": view.key for view in VIEWS.values()},
    }


def normal(written: str) -> str | None:
    """As Textual names it: ``/`` is ``slash``, ``shift+a`` is ``A``; None for what is no key."""
    if len(written) == 1:
        return _character_to_key(written) if written.isprintable() and written != " " else None
    *modifiers, base = written.split("+")
    if not set(modifiers) <= set(_MODIFIERS):
        return None
    modifiers.sort(key=_MODIFIERS.index)
    if len(base) == 1:
        base = _character_to_key(base)
    if len(base) == 1:
        return base.upper() if modifiers == ["shift"] else "+".join([*modifiers, base.lower()])
    base = base.lower()
    return "+".join([*modifiers, base]) if base in _NAMED else None


_EXAMPLES = 'such as "x", "X", "ctrl+x", "alt+x", "f5", "space" or "delete"'


def _check_shared(config: Config, chosen: Mapping[str, str]) -> None:
    usual = defaults()
    for name, key in chosen.items():
        for other, its_key in {**usual, **chosen}.items():
            # What shares a key by custom is never seen together.
            by_custom = usual[name] and usual[name] == usual[other]
            if other != name and its_key == key and not by_custom:
                raise _wrong(config, name, f"is {config.keys[name]}, which is the key of {other}")


def _unknown(name: str, known: Mapping[str, str]) -> str:
    import difflib  # only for a person who has mistyped something

    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"actions are {', '.join(sorted(known))}"
    return f"is no action; {hint}"


def _wrong(config: Config, name: str, problem: str) -> ConfigError:
    entry = config.values["keys", name]
    return ConfigError(f"{entry.where}, line {entry.line}: keys.{name} {problem}")
