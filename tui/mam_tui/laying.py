"""How the columns of a table share its width; the same for every table of the console.

Those that matter most stay where there is little room, the operator's own choice
wins, and one column takes what is left. Cells leave here with a known width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from mam_core.safe_text import clip

R = TypeVar("R")

GAP = 1


class Look(NamedTuple):
    """What texts depend on beside the row."""

    now: float
    ascii: bool = False


class Column(NamedTuple, Generic[R]):
    """One column."""

    name: str
    heading: str
    width: int
    weight: int  #: the higher, the longer it stays when there is little room
    text: Callable[[R, Look], str]
    key: Callable[[R], Any]
    right: bool = False
    by_clock: bool = False  #: its text changes with time alone, while the job runs


class Laid(NamedTuple, Generic[R]):
    """A column at its place."""

    column: Column[R]
    at: int
    width: int


class Columns(NamedTuple, Generic[R]):
    """All columns that a table can have."""

    all: Mapping[str, Column[R]]
    last: str  #: the one that takes what is left
    least_of_the_last: int = 20
    or_else: str = ""  #: takes it where there is no room for the last
    seldom_used: Collection[str] = ()  #: shown only when something would stand in them
    grows: str = ""  #: gets half of what is left, up to twice its width

    def laid_out(
        self,
        width: int,
        chosen: Sequence[str] = (),
        wide: Mapping[str, int] = MappingProxyType({}),
        used: Collection[str] | None = None,
    ) -> list[Laid[R]]:
        """What fits into `width` cells, in the order of `chosen`; `wide` makes a column wider or
        less. Without a choice the lightest leave first, and those in which nothing would stand;
        with one, those that come last.
        """
        used = self.seldom_used if used is None else used
        usual = [name for name in self.all if name in used or name not in self.seldom_used]
        chosen = [name for name in chosen if name in self.all]
        names = chosen or usual
        sizes = {name: wide.get(name, self.all[name].width) for name in names}
        if self.last in sizes:
            sizes[self.last] = self.least_of_the_last
        order = list(names) if chosen else sorted(names, key=lambda name: -self.all[name].weight)
        kept: list[str] = []
        room = width
        for name in order:
            need = sizes[name] + (GAP if kept else 0)
            if need <= room:
                kept.append(name)
                room -= need
        names = [name for name in names if name in kept]
        if self.grows in kept:
            more = min(room // 2, sizes[self.grows])
            sizes[self.grows] += more
            room -= more
        for name in (self.last, self.or_else):
            if name in kept:
                sizes[name] += room
                break
        laid: list[Laid[R]] = []
        at = 0
        for name in names:
            laid.append(Laid(self.all[name], at, sizes[name]))
            at += sizes[name] + GAP
        return laid


def cell(laid: Laid[R], row: R, look: Look) -> str:
    """At most as wide as its column."""
    return clip(laid.column.text(row, look), laid.width)


def headings(laid: Sequence[Laid[R]], name: str, reverse: bool, *, ascii_only: bool) -> str:
    """The line over the rows; an arrow stands at the column that they are sorted by."""
    up, down = ("^", "v") if ascii_only else ("▲", "▼")
    parts: list[str] = []
    at = 0
    for one in laid:
        parts.append(" " * (one.at - at))
        heading = one.column.heading
        if one.column.name == name:
            heading = heading[: one.width - 1] + (down if reverse else up)
        heading = heading[: one.width]
        parts.append(heading.rjust(one.width) if one.column.right else heading.ljust(one.width))
        at = one.at + one.width
    return "".join(parts)
