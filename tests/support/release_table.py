"""The table at the end of a release run: what was survived, tried and held, and what was lost.

A test tells a figure with ``record_property("faults: kill -9", {"kills": 1000, "violations": 0})``;
the first word says in which part of the table it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

#: In the order of the table.
PARTS = {
    "faults": "faults survived",
    "inputs": "inputs tried",
    "load": "load held",
}
#: Counts that must be nothing.
LOST = frozenset({"violations", "lost", "exceptions", "leaks", "doubles"})


class Figure(NamedTuple):
    """One line."""

    part: str
    name: str
    counts: Mapping[str, int]


def figures(properties: Iterable[tuple[str, Any]]) -> Iterator[Figure]:
    for name, counts in properties:
        part, colon, rest = name.partition(": ")
        if colon and part in PARTS and isinstance(counts, Mapping):
            yield Figure(part, rest, counts)


def lines(found: Iterable[Figure], failed: int) -> list[str]:
    """The table, as text; empty without figures."""
    known = sorted(found, key=lambda figure: figure.name)
    if not known:
        return []
    told = []
    lost = 0
    for part, title in PARTS.items():
        rows = [figure for figure in known if figure.part == part]
        if rows:
            told += ["", title]
        for row in rows:
            counts = {what: count for what, count in row.counts.items() if what not in LOST}
            lost += sum(row.counts.values()) - sum(counts.values())
            words = " · ".join(f"{count:,} {what}" for what, count in counts.items())
            told.append(f"  {row.name:<36} {words}")
    told += ["", f"what was lost: {lost}"]
    if failed:
        told.append(f"{failed} tests failed: their figures are not in here")
    return told
