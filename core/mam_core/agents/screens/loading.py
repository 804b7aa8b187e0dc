"""The files of screen rules: ours in the package, and the user's, which win.

``$XDG_CONFIG_HOME/mam/screens/NAME.toml`` changes the rules of agent NAME: a rule with
the name of one of ours replaces it, one with ``off = true`` takes it away, any other is
added, and a table ([box], [menu]) replaces ours. With ``whole = true`` at its head
the file stands alone. Rules go by the program: those of claude-code, ours and the
user's, hold for every profile that runs claude, and a file that has the profile's own
name comes on top of them. An agent for which there is no file has no rules: its
screen says nothing.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from mam_core.agents.kinds import built_in_name
from mam_core.agents.profiles import Profile
from mam_core.agents.screens.parsing import parse
from mam_core.agents.screens.reading import ScreenRules
from mam_core.bounded_pattern import BadPattern
from mam_core.errors import MamError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class BadScreenRules(MamError):
    """A file of screen rules cannot be used."""

    title = "Bad screen rules"
    exit_code = 2


def rules_for(
    agent: str, environ: Mapping[str, str] | None = None, *, like: str | None = None
) -> ScreenRules:
    """Of the agent of this name, which is the built-in one `like` by another name.

    Raises `BadScreenRules`, naming the file, when one of the user's cannot be used.
    """
    environ = os.environ if environ is None else environ
    known, data = like or agent, _packed(like or agent)
    for name in dict.fromkeys((known, agent)):
        if not _NAME.fullmatch(name):
            continue
        path = user_path(name, environ)
        theirs = _read_users(path)
        if not theirs:
            continue
        try:
            data = _merged({} if theirs.get("whole") else data, theirs)
            parse(name, data)  # so that it is this file which is named
        except BadPattern as problem:
            raise BadScreenRules(f"{path}: {problem.message}") from None
        known = name
    return ScreenRules(parse(known, data))


def rules_of(profile: Profile, environ: Mapping[str, str] | None = None) -> ScreenRules:
    """Of whichever program the profile runs."""
    return rules_for(profile.name, environ, like=built_in_name(profile))


def _packed(name: str) -> dict[str, Any]:
    if not _NAME.fullmatch(name):
        return {}
    packed = resources.files("mam_core.agents.screens").joinpath("data", f"{name}.toml")
    return tomllib.loads(packed.read_text(encoding="utf-8")) if packed.is_file() else {}


def user_path(agent: str, environ: Mapping[str, str]) -> str:
    folder = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # the XDG rule: a relative one does not count
        folder = os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(folder, "mam", "screens", f"{agent}.toml")


def _read_users(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise BadScreenRules(f"{path} cannot be read: {problem}") from None


def _merged(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Rule by rule; the version tells that somebody changed it."""
    rules = {str(rule.get("name")): rule for rule in _tables(ours)}
    for rule in _tables(theirs):
        rules[str(rule.get("name"))] = rule
    merged = {**ours, **theirs, "rule": [one for one in rules.values() if not one.get("off")]}
    if ours:
        merged["version"] = f"{ours.get('version', 0)}+{theirs.get('version', 'user')}"
    return merged


def _tables(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    rules = data.get("rule", [])
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise BadPattern("'rule' is a list of tables, each begun by [[rule]]")
    return rules
