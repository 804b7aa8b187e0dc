"""What is told about a job without what must not be told: its secrets, and where its user lives.

For events and for history. Secrets become a marker; the job's own folder
becomes ``.`` and the home folder ``~``, so that a path still helps.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from mam_core.records import REDACTED, Job

#: What may follow a path that is meant: not one more letter of a longer name.
_END = r"(?![\w-]|\.\w)"


def without_secrets(job: Job, value: Any) -> Any:
    """`value` with the marker wherever somebody wrote one of the job's own secrets."""
    secrets = [text for text in (job.auth_token, job.broker.password) if text]

    def mark(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, REDACTED)
        return text

    return _throughout(value, mark) if secrets else value


def discreet(job: Job, value: Any) -> Any:
    """`value` as the world may see it."""
    places = _places(job)

    def shorten(text: str) -> str:
        for path, name in places:
            if path in text:
                text = re.sub(re.escape(path) + _END, name, text)
        return text

    return _throughout(without_secrets(job, value), shorten)


def _places(job: Job) -> list[tuple[str, str]]:
    """Paths and what stands for them, the longest first; the root is nobody's secret."""
    named = [(os.path.expanduser("~"), "~")]
    if job.workdir:
        named += [(job.workdir, "."), (os.path.realpath(job.workdir), ".")]
    places = {path.rstrip("/"): name for path, name in named if path.startswith("/")}
    places.pop("", None)
    return sorted(places.items(), key=lambda place: -len(place[0]))


def _throughout(value: Any, change: Callable[[str], str]) -> Any:
    """`change` applied to every text in a value as JSON has them, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {
            _throughout(name, change): _throughout(item, change) for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_throughout(item, change) for item in value]
    return value
