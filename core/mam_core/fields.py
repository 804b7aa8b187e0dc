"""What a person may say about a job, and the check for each word of it.

`register`, a line of a bulk file and `edit` take the same keys, which are those
of the record; any other key is named and refused. A check answers the value as
the record keeps it.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from mam_core.clock import parse_stamp, stamp
from mam_core.errors import InvalidField, MamError
from mam_core.record_parts import Broker
from mam_core.records import MAX_PROMPT_BYTES, check_job_id

_MAX_NAME = 200
#: A key may hold a path.
_MAX_KEY = 4500
#: For every text that is neither prompt nor name, and for every list of them: with these bounds
#: the longest record that can be registered is one that can be read again.
_MAX_TEXT = 64 * 1024
_MAX_ITEMS = 1000
_MAX_SHOWN = 40
MAX_SECONDS = 9_999_999_999  #: 317 years; with it every moment has a date
MAX_BYTES = 2**62
MAX_COST = 1_000_000
MAX_TOKENS = 10**12
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def checked(fields: Mapping[str, Any], *, now: float) -> dict[str, Any]:
    """`fields` as a record keeps them; raises `InvalidField` that names the first bad one."""
    result = {}
    for name, value in fields.items():
        check = _CHECKS.get(name)
        if check is None:
            known = ", ".join(SETTABLE)
            raise InvalidField(f"{name[:40]!r} cannot be set; what can: {known}")
        try:
            result[name] = check(value, now)
        except (ValueError, OverflowError, MamError) as problem:
            raise InvalidField(f"{name}: {problem}") from None
    return result


def parse_moment(text: str, now: float) -> float:
    """``+10m`` from now, or an ISO 8601 moment."""
    if text.startswith("+"):
        return now + parse_duration(text[1:])
    try:
        return parse_stamp(text)
    except ValueError:
        words = "say 2026-06-19T09:30:00Z or +10m"
        raise ValueError(f"{_shown(text)} is no moment: {words}") from None


def parse_duration(text: str) -> float:
    """``90``, ``90s``, ``10m``, ``2h`` or ``1d`` in seconds."""
    number, unit = (text[:-1], text[-1]) if text and text[-1] in _UNITS else (text, "s")
    try:
        seconds = float(number) * _UNITS[unit]
    except ValueError:
        raise ValueError(f"{_shown(text)} is no duration: say 90s, 10m, 2h or 1d") from None
    if seconds > MAX_SECONDS and math.isfinite(seconds):
        raise ValueError(f"{_shown(text)} is no duration: the largest is {MAX_SECONDS} seconds")
    if not 0 < seconds <= MAX_SECONDS:
        raise ValueError(f"{_shown(text)} is no duration: it must be positive and finite")
    return seconds


def parse_size(text: str) -> int:
    """``8G``, ``512M`` or plain bytes."""
    unit = text[-1:].upper()
    number = text[:-1] if unit in _SIZES and unit else text
    try:
        size = float(number) * _SIZES.get(unit, 1)
    except ValueError:
        raise ValueError(f"{_shown(text)} is no size: say 8G or 512M") from None
    if size > MAX_BYTES:
        words = f"the largest is {MAX_BYTES // 2**40}T"
        raise ValueError(f"{_shown(text)} is no size: {words}")
    if not size > 0:
        raise ValueError(f"{_shown(text)} is no size: it must be positive")
    return int(size)


def check_text(what: str, text: str) -> None:
    """Words that are no part of a job, such as why it was cancelled: not without end."""
    try:
        _text(text)
    except ValueError as problem:
        raise InvalidField(f"{what}: {problem}") from None


def check_name(what: str, text: str) -> None:
    """A name that is no part of a job, such as that of a lease's owner."""
    try:
        _name(text, 0)
    except ValueError as problem:
        raise InvalidField(f"{what}: {problem}") from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…")


def _text(value: Any, limit: int = _MAX_TEXT) -> str:
    if not isinstance(value, str):
        raise ValueError("it must be a text")
    if len(value) > limit:
        raise ValueError(f"it has {len(value)} characters; the limit is {limit}")
    return value


def _prompt(value: Any, now: float) -> str:
    try:
        size = len(_text(value, limit=sys.maxsize).encode())
    except UnicodeEncodeError:
        raise ValueError("it is not text: a part of it has no UTF-8 form") from None
    if not size:
        raise ValueError("it is empty")
    if value.isspace():
        raise ValueError("it holds nothing but blanks")
    if size > MAX_PROMPT_BYTES:
        raise ValueError(f"it has {size} bytes; the limit is {MAX_PROMPT_BYTES} (1 MiB)")
    return str(value)


def _name(value: Any, now: float, most: int = _MAX_NAME) -> str:
    text = _text(value)
    if not text or len(text) > most:
        raise ValueError(f"it must have 1 to {most} characters")
    if not text.isprintable():
        raise ValueError("it must not hold control characters")
    return text


def _key(value: Any, now: float) -> str:
    return _name(value, now, _MAX_KEY)


def _seconds(value: Any, now: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("it must be a number of seconds")
    if not math.isfinite(value) or not 0 < value <= MAX_SECONDS:
        raise ValueError(f"it must be between 0 and {MAX_SECONDS} seconds, not {value:g}")
    return value


def _integer(lowest: int, highest: int) -> Callable[[Any, float], int]:
    def check(value: Any, now: float) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError("it must be a whole number")
        if not lowest <= value <= highest:
            raise ValueError(f"it must be between {lowest} and {highest}, not {value}")
        return value

    return check


def _cost(value: Any, now: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("it must be a number of US dollars")
    if not math.isfinite(value) or not 0 < value <= MAX_COST:
        raise ValueError(f"it must be between 0 and {MAX_COST} US dollars, not {value:g}")
    return value


def _workdir(value: Any, now: float) -> str:
    path = os.path.abspath(os.path.expanduser(_text(value)))
    if not os.path.isdir(path):
        raise ValueError(f"{path} is not a folder")
    return path


def _artifacts(value: Any, now: float) -> tuple[str, ...]:
    paths = _texts(value)
    for path in paths:
        if not path or "\0" in path:
            raise ValueError("an artifact needs a path")
        # Relative to the workdir; one that leaves it would be checked in somebody else's place.
        inside = os.path.normpath(path)
        if os.path.isabs(inside) or inside.split(os.sep)[0] == os.pardir:
            raise ValueError(f"{path!r} leaves the job's workdir")
    return paths


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError("it must be a list of texts")
    if len(value) > _MAX_ITEMS or sum(map(len, value)) > _MAX_TEXT:
        raise ValueError(f"it is too long: {_MAX_ITEMS} entries, {_MAX_TEXT} characters in all")
    return tuple(value)


def _after(value: Any, now: float) -> tuple[str, ...]:
    return tuple(dict.fromkeys(check_job_id(job_id) for job_id in _texts(value)))


def _size(value: Any, now: float) -> int:
    if isinstance(value, str):
        return parse_size(value)
    return _integer(1, MAX_BYTES)(value, now)


def _moment(value: Any, now: float) -> str:
    return stamp(parse_moment(_text(value), now))


def _command(value: Any, now: float) -> str:
    if not _text(value).strip() or "\0" in value:
        raise ValueError("it must be a shell line")
    return str(value)


def _topic(value: Any, now: float) -> str:
    topic = _text(value)
    if not topic or len(topic.encode("utf-8", "replace")) > 1000:
        raise ValueError("it must have 1 to 1000 bytes")
    if not topic.isprintable() or set(topic) & set("+#$ "):
        raise ValueError("a topic holds no wildcard (+ #), no $, no space and no control character")
    if topic.startswith("/") or topic.endswith("/"):
        raise ValueError("it must not begin or end with '/'")
    return topic


def _broker(value: Any, now: float) -> Broker:
    if isinstance(value, Broker):
        value = value.to_dict()
    if not isinstance(value, dict):
        raise ValueError("it must be an object with host, port, tls, username, password")
    unknown = set(value) - {"host", "port", "tls", "username", "password"}
    if unknown:
        raise ValueError(f"{min(unknown)[:40]!r} is not known there")
    broker = Broker.from_dict(value)
    for part, check in _BROKER_CHECKS.items():
        try:
            check(getattr(broker, part), now)
        except ValueError as problem:
            raise ValueError(f"{part}: {problem}") from None
    return broker


def _username(value: str, now: float) -> None:
    if not _text(value).isprintable():
        raise ValueError("it must not hold control characters")


def _token(value: Any, now: float) -> str | None:
    """True asks for a fresh one; the document's production switch."""
    if value is True:
        return fresh_token()
    if value in (None, False):
        return None
    if len(_text(value)) < 16:
        raise ValueError("it must be true, or a text of at least 16 characters")
    return str(value)


def fresh_token() -> str:
    """None begins with a dash: a command line would take it for an option."""
    import secrets

    while (token := secrets.token_urlsafe(32)).startswith("-"):
        pass
    return token


def _optional(check: Callable[[Any, float], Any]) -> Callable[[Any, float], Any]:
    def optional(value: Any, now: float) -> Any:
        return None if value is None else check(value, now)

    return optional


_BROKER_CHECKS: dict[str, Callable[[Any, float], Any]] = {
    "host": _name,
    "port": _integer(1, 65535),
    "username": _optional(_username),
    "password": _optional(lambda value, now: _text(value)),
}

_CHECKS: dict[str, Callable[[Any, float], Any]] = {
    "prompt": _prompt,
    "agent": _name,
    "agent_session": _name,
    "model": _optional(_name),
    "timeout_sec": _seconds,
    "idle_timeout_sec": _seconds,
    "workdir": _optional(_workdir),
    "expected_artifacts": _artifacts,
    "validate": _optional(_command),
    "after": _after,
    "group": _optional(_name),
    "priority": _integer(-1_000_000, 1_000_000),
    "key": _optional(_key),
    "max_attempts": _integer(1, 1000),
    "memory_max": _optional(_size),
    "max_cost": _optional(_cost),
    "max_tokens": _optional(_integer(1, MAX_TOKENS)),
    "not_before": _optional(_moment),
    "topic_prefix": _topic,
    "broker": _broker,
    "auth_token": _token,
}

#: The record's keys that `register` can set.
SETTABLE = tuple(_CHECKS)

#: Those that `edit` can change while a job is pending: its identity and its secrets stay.
EDITABLE = tuple(
    name for name in SETTABLE if name not in ("key", "topic_prefix", "broker", "auth_token")
)
