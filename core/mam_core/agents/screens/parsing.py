"""From the words of a rules file to rules; what cannot be meant is named and refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from mam_core.agents.screens.rules import (
    Box,
    Choice,
    Condition,
    Meaning,
    Menu,
    Pattern,
    Region,
    Rule,
    Rules,
    Shape,
)
from mam_core.agents.signs import AgentState
from mam_core.bounded_pattern import BadPattern, line_pattern

#: Of the file's own form; a newer one is not guessed at.
FORMAT = 1
_LINES = 8

_HEAD = {"format", "version", "whole", "seen_on", "prompt", "box", "menu", "rule"}
_RULE = {
    *("name", "state", "priority", "if", "unless", "box", "menu", "dialog", "choices", "failed"),
    "off",
}
_BOX = {"shape", "line", "more", "above", "below", "last", "empty"}
_MENU = {"line", "press", "hint", "top", "yes", "no", "always", "hide"}
_CONDITION = {"in", "line", "lines"}
_CHOICE = {"words", "keys", "means"}

_Word = TypeVar("_Word", bound=StrEnum)


def parse(agent: str, data: Mapping[str, Any]) -> Rules:
    """Raises `BadPattern` with a sentence that names the rule."""
    if not data:
        return Rules(agent, "0")
    _known(data, _HEAD, "the file")
    if data.get("format") != FORMAT:
        raise BadPattern(f"its format is {data.get('format')!r}, and {FORMAT} is what is read here")
    rules = [_rule(rule) for rule in _list(data, "rule", "the file")]
    return Rules(
        agent,
        str(data.get("version", 0)),
        tuple(sorted(rules, key=lambda rule: -rule.priority)),
        _box(data["box"]) if "box" in data else None,
        _menu(data["menu"]) if "menu" in data else None,
        _pattern(data, "prompt", "the file"),
    )


def _rule(data: Any) -> Rule:
    name = data.get("name") if isinstance(data, dict) else None
    if not isinstance(name, str) or not name:
        raise BadPattern("every [[rule]] has a name")
    where = f"rule {name!r}"
    _known(data, _RULE, where)
    rule = Rule(
        name,
        _word(AgentState, data.get("state"), where),
        _number(data.get("priority", 0), where),
        tuple(_condition(one, where) for one in _list(data, "if", where)),
        tuple(_condition(one, where) for one in _list(data, "unless", where)),
        _flag(data["box"], where) if "box" in data else None,
        _flag(data.get("menu", False), where),
        _text(data["dialog"], where) if "dialog" in data else None,
        tuple(_choice(one, where) for one in _list(data, "choices", where)),
        _flag(data.get("failed", False), where),
    )
    if not rule.conditions and rule.box is not True:
        raise BadPattern(f"{where} has no condition, so it would hold for every screen")
    return rule


def _condition(data: Any, where: str) -> Condition:
    _known(data, _CONDITION, where)
    pattern = _pattern(data, "line", where)
    if pattern is None:
        raise BadPattern(f"{where}: a condition has a 'line'")
    region = _word(Region, data.get("in", "bottom"), where)
    return Condition(region, pattern, _number(data.get("lines", _LINES), where))


def _choice(data: Any, where: str) -> Choice:
    _known(data, _CHOICE, where)
    keys = tuple(_text(key, where) for key in _list(data, "keys", where))
    if not keys:
        raise BadPattern(f"{where}: a choice has 'keys'")
    means = _word(Meaning, data.get("means", "other"), where)
    return Choice(_text(data.get("words"), where), keys, means)


def _box(data: Any) -> Box:
    where = "[box]"
    _known(data, _BOX, where)
    line = _pattern(data, "line", where, {"text"})
    if line is None:
        raise BadPattern(f"{where} has a 'line'")
    return Box(
        _word(Shape, data.get("shape", "line"), where),
        line,
        _pattern(data, "more", where, {"text"}),
        _pattern(data, "above", where),
        _pattern(data, "below", where),
        _flag(data.get("last", False), where),
        tuple(line_pattern(_text(one, where)) for one in _list(data, "empty", where)),
    )


def _menu(data: Any) -> Menu:
    where = "[menu]"
    _known(data, _MENU, where)
    line = _pattern(data, "line", where, {"mark", "number", "words"})
    press = data.get("press", "steps")
    if line is None or press not in ("number", "steps"):
        raise BadPattern(f"{where} has a 'line', and 'press' is \"number\" or \"steps\"")
    return Menu(
        line,
        press == "number",
        _pattern(data, "hint", where, {"key"}),
        *(_pattern(data, key, where) for key in ("top", "yes", "no", "always", "hide")),
    )


def _pattern(
    data: Mapping[str, Any], key: str, where: str, groups: Iterable[str] = ()
) -> Pattern | None:
    if key not in data:
        return None
    try:
        pattern = line_pattern(_text(data[key], where))
    except BadPattern as problem:
        raise BadPattern(f"{where}: {problem.message}") from None
    for group in groups:
        if group not in pattern.groupindex:
            raise BadPattern(f"{where}: '{key}' has a group (?P<{group}>…)")
    return pattern


def _known(data: Any, keys: set[str], where: str) -> None:
    if not isinstance(data, dict):
        raise BadPattern(f"{where}: a table is expected, and not {data!r}")
    for key in data:
        if key not in keys:
            raise BadPattern(f"{where}: there is no key {key!r}")


def _list(data: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = data.get(key, [])
    if not isinstance(value, list):
        raise BadPattern(f"{where}: '{key}' is a list")
    return value


def _word(kind: type[_Word], value: object, where: str) -> _Word:
    try:
        return kind(str(value))
    except ValueError:
        raise BadPattern(f"{where}: {value!r} is none of {', '.join(kind)}") from None


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise BadPattern(f"{where}: a text is expected, and not {value!r}")
    return value


def _number(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadPattern(f"{where}: a whole number is expected, and not {value!r}")
    return value


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise BadPattern(f"{where}: true or false is expected, and not {value!r}")
    return value
