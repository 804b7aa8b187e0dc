"""Many lines of one kind as a few and a count: 10,000 broken files must not bury the rest."""

from __future__ import annotations

from mam_core.cli.terminal import say

#: So many of a kind are said in full.
SHOWN = 5

WARNING = "warning: "

_said: dict[str, list[str]] = {}
_more: dict[str, int] = {}


def say_of(kind: str, message: str) -> None:
    """A line on stderr, unless this command has said enough of its kind."""
    said = _said.setdefault(kind, [])
    if len(said) < SHOWN:
        said.append(message)
        say(message)
    else:
        _more[kind] = _more.get(kind, 0) + 1


def say_how_many_more() -> None:
    """At the end of a command: what was held back, as one line a kind."""
    for kind, count in _more.items():
        first = _said[kind][0].removeprefix(WARNING)
        said_as = WARNING if first != _said[kind][0] else ""
        say(f"{said_as}… and {count} more like this: {first}")
    _said.clear()
    _more.clear()


def kind_of(warning: str) -> str:
    """What happened stands at the end of a sentence; whom it happened to, before."""
    return " ".join(warning.partition(": ")[0].split()[-3:])
