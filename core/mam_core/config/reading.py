"""From a file, a variable or a flag to checked values; a mistake is one sentence with its place.

Imported only when there is something to read, and the TOML parser only when
that is a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from mam_core import fields
from mam_core.config.loading import VARIABLES, KeyPath, Value
from mam_core.config.schema import TABLES, Kind, Setting, dotted, setting_at
from mam_core.errors import ConfigError, InvalidField

_MAX_FILE_BYTES = 1024 * 1024
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_PARSED = (Kind.DURATION, Kind.CRON, Kind.ZONE)
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _Wrong(Exception):
    """A value is not what it should be; `below` leads to the part of it that is wrong."""

    def __init__(self, problem: str, *below: str) -> None:
        super().__init__(problem)
        self.below = below


# -- the three sources -------------------------------------------------------------------------


def read_file(path: str, tables: Collection[str] | None = None) -> dict[KeyPath, Value]:
    """Every setting of a file; one outside of `tables`, where these are given, is refused."""
    text = _read_text(path)
    lines = _Lines(text)
    values: dict[KeyPath, Value] = {}
    try:
        for place, setting, raw in _settings_in(_parse(path, text)):
            if tables is not None and place[0] not in tables:
                raise _Wrong(f"cannot be said here; what can: {', '.join(tables)}", place[0])
            try:
                value = checked(place, setting, raw, os.path.dirname(path))
            except _Wrong as wrong:
                raise _Wrong(str(wrong), *place, *wrong.below) from None
            values[place] = Value(value, "file", path, partial(lines.of, place))
    except _Wrong as wrong:
        line = lines.of(wrong.below)
        raise ConfigError(f"{path}, line {line}: {dotted(wrong.below)} {wrong}") from None
    return values


class _Lines:
    """The lines of a text's keys, counted when somebody asks."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: dict[KeyPath, int] | None = None

    def of(self, place: KeyPath) -> int:
        from mam_core.config.lines import key_lines, line_of

        if self._lines is None:
            self._lines = key_lines(self._text)
        return line_of(self._lines, place)


def read_variable(name: str, text: str, cwd: str) -> Value:
    """The setting behind an environment variable, from its text."""
    place = VARIABLES[name]
    setting = TABLES[place[0]].settings[place[1]]
    try:
        return Value(_from_text(setting, text, cwd), "environment", name)
    except (_Wrong, ValueError):
        words = "" if setting.secret else f", not {text!r:.60}"
        raise ConfigError(f"the variable {name} must be {setting.kind}{words}") from None


def read_flag(key: str, value: Any, cwd: str) -> Value:
    place = tuple(key.split("."))
    setting = setting_at(place)
    if setting is None:
        raise ConfigError(f"there is no setting {key}")
    try:
        return Value(checked(place, setting, value, cwd), "flag", key)
    except _Wrong as wrong:
        raise ConfigError(f"{key} {wrong}") from None


def check_together(values: Mapping[KeyPath, Value]) -> None:
    """What no single key can get wrong: groups that contradict themselves, half a schedule."""
    for group in sorted({place[1] for place in values if place[0] == "groups"}):
        limits = [
            (place, values[place])
            for place in (("groups", group, key) for key in ("min", "slots", "max"))
            if place in values
        ]
        for (low_place, low), (high_place, high) in pairwise(limits):
            if low.value > high.value:
                raise ConfigError(
                    f"{low.where}, line {low.line}: {dotted(low_place)} is {low.value}, which is "
                    f"more than {dotted(high_place)}, {high.value}"
                )
    for place in sorted(place for place in values if place[0] == "needs"):
        if not _is_name(place[1]):
            raise _misplaced(values[place], place, "is no name of a variable")
    for name in sorted({place[1] for place in values if place[0] == "schedules"}):
        _check_schedule(name, values)


def _check_schedule(name: str, values: Mapping[KeyPath, Value]) -> None:
    said = {place[2]: values[place] for place in values if place[:2] == ("schedules", name)}
    anywhere, at = next(iter(said.values())), ("schedules", name)
    if ("every" in said) == ("cron" in said):
        raise _misplaced(anywhere, at, "needs either every or cron")
    template = said.get("template")
    if template is None:
        raise _misplaced(anywhere, at, "names no template")
    if not any(place[:2] == ("templates", template.value) for place in values):
        words = f"names {template.value!r}, and there is no such template"
        raise _misplaced(template, (*at, "template"), words)


def _misplaced(value: Value, place: KeyPath, words: str) -> ConfigError:
    return ConfigError(f"{value.where}, line {value.line}: {dotted(place)} {words}")


# -- a file, taken apart -----------------------------------------------------------------------


def _read_text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise ConfigError(f"{path} cannot be read: {why}") from None
    if len(data) > _MAX_FILE_BYTES:
        raise ConfigError(f"{path} has more than {_MAX_FILE_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise ConfigError(f"{path}, line {line}: it is not UTF-8") from None


def _parse(path: str, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"{path}: it is nested too deeply") from None
    except ValueError as problem:
        words = str(problem)
        place = re.search(r" \(at line (\d+), column (\d+)\)$", words)
        if place is None:
            line = text.rstrip().count("\n") + 1
            raise ConfigError(f"{path}, line {line}: it is not TOML: {words}") from None
        said = words[: place.start()]
        raise ConfigError(
            f"{path}, line {place[1]}: it is not TOML: {said} in column {place[2]}"
        ) from None


def _settings_in(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Setting, Any]]:
    for name, content in data.items():
        table = TABLES.get(name)
        if table is None:
            raise _Wrong(_unknown(name, TABLES), name)
        if not isinstance(content, dict):
            raise _Wrong("must be a table", name)
        if not table.named:
            yield from _pairs(table.settings, table.any_key, content, (name,))
            continue
        for part, inner in content.items():
            if not isinstance(inner, dict):
                raise _Wrong(f"must be a table: [{name}.NAME]", name, part)
            try:
                fields.checked({"group": part}, now=0.0)
            except InvalidField as problem:
                raise _Wrong(f"is no name: {_after_colon(problem)}", name, part) from None
            yield from _pairs(table.settings, None, inner, (name, part))


def _pairs(
    settings: Mapping[str, Setting],
    any_key: Setting | None,
    content: Mapping[str, Any],
    at: KeyPath,
) -> Iterator[tuple[KeyPath, Setting, Any]]:
    for key, raw in content.items():
        setting = settings.get(key, any_key)
        if setting is None:
            raise _Wrong(_unknown(key, settings), *at, key)
        if not setting.in_file:
            instead = "password_file" if key == "password" else "the environment"
            raise _Wrong(f"is not read from here: use {instead}", *at, key)
        yield (*at, key), setting, raw


def _unknown(key: str, known: Mapping[str, object]) -> str:
    import difflib  # only for a person who has mistyped something

    near = difflib.get_close_matches(key, known, 1)
    if near:
        return f"is not known; did you mean {near[0]}?"
    return f"is not known; known are {', '.join(known)}"


# -- one value ---------------------------------------------------------------------------------


def checked(place: KeyPath, setting: Setting, value: Any, base: str) -> Any:
    """`value` as the program keeps it; paths are taken from `base`."""
    if setting.kind is Kind.FIELD:
        return _field(place, value, base)
    if (wrong := _wrong_pair(setting.kind, value)) is not None:
        raise _Wrong("must be a text under the name of a variable", wrong)
    if not _fits(setting.kind, value):
        raise _Wrong(f"must be {setting.kind}, not {_shown(value)}")
    if setting.choices:
        for one in value if setting.kind is Kind.SOME else (value,):
            if one not in setting.choices:
                words = "may hold" if setting.kind is Kind.SOME else "must be one of"
                raise _Wrong(f"{words} {', '.join(setting.choices)}, not {_shown(one)}")
    if setting.kind is Kind.PATH:
        return os.path.join(base, os.path.expanduser(value))
    if setting.kind is Kind.PATHS:
        return tuple(os.path.join(base, os.path.expanduser(path)) for path in value)
    if setting.kind is Kind.STORE:
        return _store(value, base)
    if setting.kind is Kind.SIZE:
        return value if isinstance(value, int) else fields.parse_size(value)
    if setting.kind in _PARSED:
        try:
            return _parsed(setting.kind, value)
        except (ValueError, InvalidField) as problem:
            raise _Wrong(f"is refused: {problem}") from None
    return tuple(value) if setting.kind in (Kind.WORDS, Kind.NAMES, Kind.SOME) else value


def _fits(kind: Kind, value: Any) -> bool:
    match kind:
        case Kind.TEXT | Kind.PATH | Kind.STORE | Kind.DURATION | Kind.CRON | Kind.ZONE:
            return isinstance(value, str) and bool(value) and "\0" not in value
        case Kind.FLAG:
            return isinstance(value, bool)
        case Kind.COUNT:
            return _is_number(value, int) and value >= 0
        case Kind.NUMBER | Kind.SECONDS:
            return _is_number(value, int | float) and 0 < value < 1e10
        case Kind.PORT:
            return _is_number(value, int) and 1 <= value <= 65535
        case Kind.SIZE:
            return _is_size(value)
        case Kind.WORDS:
            return isinstance(value, list) and bool(value) and all(map(_is_word, value))
        case Kind.SOME:
            return isinstance(value, list) and all(isinstance(word, str) for word in value)
        case Kind.PATHS:
            return isinstance(value, list) and all(_is_word(path) and path for path in value)
        case Kind.NAMES:
            return isinstance(value, list) and all(map(_is_name, value))
        case Kind.PAIRS:
            return isinstance(value, dict)
        case _:
            raise AssertionError(kind)


def _is_number(value: Any, types: Any) -> bool:
    return isinstance(value, types) and not isinstance(value, bool)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _SHELL_NAME.fullmatch(value) is not None


def _is_size(value: Any) -> bool:
    if isinstance(value, str):
        try:
            fields.parse_size(value)
        except ValueError:
            return False
        return True
    return _is_number(value, int) and 0 < value < 2**62


def _wrong_pair(kind: Kind, value: Any) -> str | None:
    """The first name in a table of texts that is no name or has no text."""
    if kind is not Kind.PAIRS or not isinstance(value, dict):
        return None
    pairs = value.items()
    return next((n for n, t in pairs if not (_is_name(n) and _is_word(t))), None)


def _field(place: KeyPath, value: Any, base: str) -> Any:
    """A field of the record, checked as `mam register` checks it.

    A template's is kept as it was written: ``+10m`` counts from the moment of
    use, and a token is made for each job anew.
    """
    key = place[-1]
    if key == "workdir" and isinstance(value, str):
        # Whether the folder is there is asked when a job is registered.
        return os.path.normpath(os.path.join(base, os.path.expanduser(value)))
    if key == "auth_token":
        if not isinstance(value, bool):
            raise _Wrong("must be true or false: a token is made for each job")
        return value
    if key == "broker" and isinstance(value, dict) and "password" in value:
        raise _Wrong("is not read from here: use [broker] password_file", "password")
    try:
        kept = fields.checked({key: value}, now=0.0)[key]
    except InvalidField as problem:
        raise _Wrong(f"is refused: {_after_colon(problem)}") from None
    return value if place[0] == "templates" else kept


def _parsed(kind: Kind, text: str) -> Any:
    """Raises ValueError with a sentence."""
    from mam_core.schedules import cron

    if kind is Kind.DURATION:
        seconds = fields.parse_duration(text)
        if seconds != int(seconds):
            raise ValueError("it must be whole seconds")
        return int(seconds)
    if kind is Kind.ZONE:
        cron.check_zone(text)
    else:
        cron.Cron.parse(text)
    return text


def _store(value: str, base: str) -> str:
    """What is wrong with it is told without it: a password may stand in it."""
    from mam_core.store_urls import StoreUrl

    try:
        return str(StoreUrl.parse(value, base))
    except ConfigError as problem:
        raise _Wrong(f"is refused: {problem}") from None


def _after_colon(problem: InvalidField) -> str:
    return problem.message.partition(": ")[2]


def _from_text(setting: Setting, text: str, cwd: str) -> Any:
    value: Any = text
    if setting.kind is Kind.FLAG:
        word = text.strip().lower()
        value = word in _YES if word in _YES + _NO else None
    elif setting.kind is Kind.PORT:
        value = int(text)
    return checked((), setting, value, cwd)


def _shown(value: Any) -> str:
    """A wrong value, short; a table or a list only by its kind, for what it may hold."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    return repr(value)[:60]
