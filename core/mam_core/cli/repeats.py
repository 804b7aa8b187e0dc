"""Many lines of one kind as a few and a count: 10,000 broken files must not bury the rest."""

from __future__ import annotations

import time

from mam_core.cli.terminal import say

#: So many of a kind are said in full, and again when the last of them was so long ago.
SHOWN = 5
_FORGOTTEN_AFTER_SEC = 60.0

WARNING = "warning: "

_said: dict[str, list[str]] = {}
_more: dict[str, int] = {}
_said_at: dict[str, float] = {}


def say_of(kind: str, message: str) -> None:
    """A line on stderr, unless this command has said enough of its kind."""
    now = time.monotonic()
    if now - _said_at.get(kind, now) > _FORGOTTEN_AFTER_SEC:
        _said[kind] = []  # a command that runs for days: this is news again
    _said_at[kind] = now
    said = _said.setdefault(kind, [])
    if len(said) < SHOWN:
        said.append(message)
        say(message)
    else:
        _more[kind] = _more.get(kind, 0) + 1


def start_counting() -> None:
    """At the start of a command: what was said before it, in the same process, is not its own."""
    _said.clear()
    _more.clear()
    _said_at.clear()


def say_how_many_more() -> None:
    """At the end of a command: what was held back, as one line a kind."""
    for kind, count in list(_more.items()):  # another thread may still speak
        first = _said[kind][0].removeprefix(WARNING)
        said_as = WARNING if first != _said[kind][0] else ""
        say(f"{said_as}… and {count} more like this: {first}")
    start_counting()


def kind_of(warning: str) -> str:
    """What happened stands at the end of a sentence; whom it happened to, before."""
    return " ".join(warning.partition(": ")[0].split()[-3:])
