"""What a tool found, as the model may read it: no secret, nothing invisible, not without end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mam_core.discretion import without_keys
from mam_core.errors import MamError
from mam_core.records import Job
from mam_core.redaction import without_secrets
from mam_core.safe_text import safe_json

#: Characters of one answer. Models read slowly, and some clients refuse more.
MOST_CHARS = 100_000


class TooMuch(MamError):
    """That is more than one answer can hold: ask for fewer jobs or lines."""

    title = "Too much"


def as_text(value: Any, jobs: list[Job]) -> str:
    """JSON in which nothing is left that a terminal or a reader could be fooled by.

    `jobs` are those whose own secrets must not be in it.
    """
    for job in jobs:
        value = without_secrets(job, value)
    text = safe_json(_throughout(value, without_keys))
    if len(text) > MOST_CHARS:
        raise TooMuch
    return text


def _throughout(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _throughout(item, change) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_throughout(item, change) for item in value]
    return value
