"""A job as a form has it: every field a text, in the words that the command line takes.

One reading for every form there may be, so that ``10m``, ``8G`` and ``+2h`` mean
the same wherever a person types them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from mam_core.errors import InvalidField
from mam_core.fields import EDITABLE, SETTABLE, parse_duration
from mam_core.records import DEFAULTS, Job


class Shape(Enum):
    """What a box looks like."""

    LINE = "line"
    LINES = "lines"  #: a list, one entry a line
    FLAG = "flag"  #: said or not; its text is `YES` or empty


YES = "yes"


class Field(NamedTuple):
    """One box of the form."""

    name: str  #: the record's key; a part of the broker, and what is no key, by its option
    label: str
    example: str = ""
    read: Callable[[str], Any] = str.strip
    shape: Shape = Shape.LINE


#: Options that are called otherwise than their key.
_OPTIONS = {
    "timeout_sec": "timeout",
    "idle_timeout_sec": "idle_timeout",
    "expected_artifacts": "artifact",
    "auth_token": "token",
}
BROKER = "broker"
PASSWORD_FILE = "broker_password_file"
ALLOW_COLLISION = "allow_collision"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no number") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no whole number") from None


def _entries(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


#: In the order of a form; the first ones are what every job has.
FIELDS = (
    Field("prompt", "prompt", "what to do", str),
    Field("agent", "agent", "claude-code"),
    Field("agent_session", "session", "tmux:claude"),
    Field("workdir", "workdir", "where it works (default: here)"),
    Field("model", "model"),
    Field("expected_artifacts", "artifacts", "one path a line", _entries, Shape.LINES),
    Field("validate", "validate", "a shell line that must succeed"),
    Field("timeout_sec", "timeout", "1h", parse_duration),
    Field("idle_timeout_sec", "idle timeout", "2m", parse_duration),
    Field("max_attempts", "attempts", "1", _whole),
    Field("max_cost", "max cost", "US dollars", _number),
    Field("max_tokens", "max tokens", "", _whole),
    Field("memory_max", "memory", "8G"),
    Field("group", "group"),
    Field("priority", "priority", "0", _whole),
    Field("key", "key", "only one live job has it"),
    Field("after", "after", "ids of jobs, one a line", _entries, Shape.LINES),
    Field("not_before", "not before", "+10m"),
    Field("auth_token", "token", "only signed events count", bool, Shape.FLAG),
    Field("topic_prefix", "topic", "where its events go (default: one of its own)"),
    Field("broker_host", "broker host", "the broker of its events (default: as set)"),
    Field("broker_port", "broker port", "1883", _whole),
    Field("broker_tls", "broker TLS", "speak TLS to the broker", bool, Shape.FLAG),
    Field("broker_username", "broker user"),
    Field(PASSWORD_FILE, "password file", "its first line is the broker's password"),
    Field(
        ALLOW_COLLISION,
        "collision",
        "also when a live job is to write the same artifact",
        bool,
        Shape.FLAG,
    ),
)
#: What is settled at registration and stays.
SETTLED = tuple(field.name for field in FIELDS if field.name not in EDITABLE)


def as_request(texts: Mapping[str, str]) -> dict[str, Any]:
    """The record's keys from what was typed; an empty box says nothing.

    Raises `InvalidField` that names the box; the registry checks the values themselves.
    """
    request: dict[str, Any] = {}
    for field in FIELDS:
        try:
            value = value_of(field, texts)
        except (ValueError, OverflowError) as problem:
            raise InvalidField(f"{field.label}: {problem}") from None
        part = field.name.removeprefix(f"{BROKER}_")
        if value is None or field.name in (PASSWORD_FILE, ALLOW_COLLISION):
            continue
        if field.name in SETTABLE:
            request[field.name] = value
        else:
            request.setdefault(BROKER, {})[part] = value
    return request


def value_of(field: Field, texts: Mapping[str, str]) -> Any:
    """What a box says, read; None when it says nothing. Raises `ValueError`."""
    text = texts.get(field.name, "")
    return field.read(text) if text.strip() else None


def as_words(texts: Mapping[str, str], clear: Sequence[str] = ()) -> list[str]:
    """The same as options of `register` or `edit`; a value that begins with a dash cannot be taken
    for another option."""
    words = []
    for field in FIELDS:
        text = texts.get(field.name, "")
        if not text.strip():
            continue
        if field.shape is Shape.FLAG:
            words.append(_flag(field.name))
        else:
            values = [text if field.read is str else text.strip()]
            values = _entries(text) if field.shape is Shape.LINES else values
            words += [f"{_flag(field.name)}={value}" for value in values]
    return words + [f"--clear={_flag(name).removeprefix('--')}" for name in clear]


def _flag(name: str) -> str:
    return "--" + _OPTIONS.get(name, name).replace("_", "-")


def as_texts(job: Job) -> dict[str, str]:
    """What the boxes hold for a job that is there; a default is an empty box."""
    record = {name: getattr(job, name) for name in EDITABLE}
    return as_filled({name: value for name, value in record.items() if value != DEFAULTS[name]})


def as_filled(values: Mapping[str, Any]) -> dict[str, str]:
    """What the boxes hold for some of the record's keys, as a template has them."""
    broker = values.get(BROKER) or {}
    parts = {f"{BROKER}_{part}": value for part, value in broker.items() if part != "password"}
    known = {**values, **parts}
    return {field.name: _text(field, known.get(field.name)) for field in FIELDS}


def _text(field: Field, value: Any) -> str:
    if value is None or value is False:
        return ""
    if field.shape is Shape.FLAG:
        return YES
    if field.shape is Shape.LINES:
        return "\n".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def changed(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Between two states of a form: the boxes that say something else now, and those emptied."""
    differs = {
        field.name: after.get(field.name, "")
        for field in FIELDS
        if after.get(field.name, "").strip() != before.get(field.name, "").strip()
    }
    filled = {name: text for name, text in differs.items() if text.strip()}
    return filled, [name for name in differs if name not in filled]
