"""Values out of foreign JSON: the wanted kind, or nothing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from mam_core.agents.streams.base import Tokens

_TOO_MANY = 2**53
_MAX_NAME_CHARS = 128
#: A session's id goes into a command line, so it may not look like an option.
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\^_]")

#: Where a tool's input says in words what it is about, the best first. A prompt is not among them.
_TOPICS = (
    "description", "command", "file_path", "filePath", "path", "pattern", "query", "url", "subject",
)  # fmt: skip
_FILES = ("file_path", "filePath", "notebook_path", "path")


def table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """A text that can be written anywhere: JSON may hold half a character."""
    if not isinstance(value, str):
        return ""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace").decode()
    return value


def label(value: Any) -> str:
    """A text that is kept: what is no name is cut, so that many of them stay small."""
    return text(value)[:_MAX_NAME_CHARS]


def count(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value < _TOO_MANY else 0


def number(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) and 0 <= found < _TOO_MANY else None


def session(value: Any) -> str | None:
    return value if isinstance(value, str) and _SESSION.fullmatch(value) else None


def tokens(**counts: Any) -> Tokens:
    """Foreign counts as `Tokens`; what is no count is nothing."""
    return Tokens(**{part: count(value) for part, value in counts.items()})


def unstyled(line: str) -> str:
    """A line of text without colours and titles."""
    return _ESCAPES.sub("", line) if "\x1b" in line else line


def doing(tool_input: Any) -> str:
    """What a call runs: its command before what it says about it."""
    return text(table(tool_input).get("command")) or topic(tool_input)


def topic(tool_input: Any) -> str:
    """What a tool is used for, in the words of its input."""
    given = table(tool_input)
    return next((found for key in _TOPICS if (found := text(given.get(key)))), "")


def file_name(tool_input: Any) -> str:
    """The file that a tool writes, without the folders it stands in."""
    given = table(tool_input)
    path = next((found for key in _FILES if (found := text(given.get(key)))), "")
    return label(path.rstrip("/").rpartition("/")[2])


def api_words(message: str) -> str:
    """The sentence in an API's error object, where a message is one."""
    if not message.startswith("{"):
        return message
    try:
        problem = table(table(json.loads(message)).get("error"))
    except (ValueError, RecursionError):
        return message
    said, status = text(problem.get("message")), text(problem.get("status"))
    if not said:
        return message
    return f"{said} ({status})" if status else said
