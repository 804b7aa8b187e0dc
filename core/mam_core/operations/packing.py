"""Bars of lanes in rows in which none overlaps another: placed once, and asked for any window.

Where a bar stands depends only on those that began before it. So the rows are the same for
every window and for every moment of the past, and a window is a search by bisection in each
row: what is not seen is never looked at, and nothing jumps to another row while time goes by.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from mam_core.operations.bars import Bar, Dimension

_FAR = float("inf")


class PackedRow:
    """Bars one after the other. Both their beginnings and their ends are in order, then."""

    __slots__ = ("bars", "begins", "ends")

    def __init__(self) -> None:
        self.bars: list[Bar] = []
        self.begins: list[float] = []
        self.ends: list[float] = []

    def append(self, bar: Bar) -> None:
        self.bars.append(bar)
        self.begins.append(bar.began_at)
        self.ends.append(_end(bar))

    def window(self, begin: float, end: float) -> range:
        """The places of those that touch it."""
        last = bisect_right(self.begins, end)
        if not last or self.ends[last - 1] < begin:
            return range(0)
        return range(bisect_left(self.ends, begin, hi=last), last)


class Place(NamedTuple):
    """Where a bar stands."""

    lane: str
    row: int
    at: int  #: in its row


class Packing:
    """All bars in the lanes of one dimension."""

    def __init__(self, by: Dimension, bars: Iterable[Bar]) -> None:
        self._by = by
        self._lanes: dict[str, list[PackedRow]] = {}
        self._places: dict[tuple[str, int], Place] = {}
        self._names: list[str] = []
        self._stale: set[str] | None = None  #: lanes that are to be packed anew; None: all
        self.mend(bars)

    def __iter__(self) -> Iterator[tuple[str, list[PackedRow]]]:
        """By name; what has none comes last."""
        return ((name, self._lanes[name]) for name in self._names)

    def place(self, key: tuple[str, int]) -> Place | None:
        return self._places.get(key)

    @property
    def is_stale(self) -> bool:
        return self._stale is None or bool(self._stale)

    def put(self, bar: Bar, before: Bar | None) -> None:
        """A bar is new, or is another than `before`. What begins last, and what ends where it
        stands, has its place at once: that is all that happens while somebody looks on."""
        assert self._stale is not None
        name = bar.under(self._by)
        if before is not None and before.under(self._by) != name:
            self._stale.add(before.under(self._by))
            before = None
        if name in self._stale:
            return
        place = None if before is None else self._places.get(bar.key)
        fits = self._add(name, bar) if place is None else self._change(place, bar)
        if not fits:
            self._stale.add(name)

    def remove(self, bar: Bar) -> None:
        assert self._stale is not None
        self._stale.add(bar.under(self._by))

    def mend(self, bars: Iterable[Bar]) -> None:
        """Of all bars, those of stale lanes are packed anew."""
        lanes: dict[str, list[Bar]] = {name: [] for name in self._stale or ()}
        for bar in bars:
            name = bar.under(self._by)
            if self._stale is None:
                lanes.setdefault(name, []).append(bar)
            elif name in self._stale:
                lanes[name].append(bar)
        for name, own in lanes.items():
            for row in self._lanes.pop(name, ()):
                for bar in row.bars:
                    place = self._places.get(bar.key)
                    if place is not None and place.lane == name:
                        del self._places[bar.key]
            if own:
                own.sort(key=_in_order)
                self._lanes[name] = self._packed(name, own)
        self._stale = set()
        self._names = sorted(self._lanes, key=lambda name: (not name, name))

    def _packed(self, name: str, bars: Iterable[Bar]) -> list[PackedRow]:
        made: list[PackedRow] = []
        for number, bar in rows(bars):
            if number == len(made):
                made.append(PackedRow())
            self._places[bar.key] = Place(name, number, len(made[number].bars))
            made[number].append(bar)
        return made

    def _add(self, name: str, bar: Bar) -> bool:
        lane = self._lanes.get(name)
        if lane is None or any(row.begins[-1] > bar.began_at for row in lane):
            return False
        free = (at for at, row in enumerate(lane) if row.ends[-1] <= bar.began_at)
        number = next(free, len(lane))
        if number == len(lane):
            lane.append(PackedRow())
        self._places[bar.key] = Place(name, number, len(lane[number].bars))
        lane[number].append(bar)
        return True

    def _change(self, place: Place, bar: Bar) -> bool:
        row, at = self._lanes[place.lane][place.row], place.at
        is_last = at == len(row.bars) - 1
        if row.begins[at] != bar.began_at or not (is_last or _end(bar) <= row.begins[at + 1]):
            return False
        row.bars[at], row.ends[at] = bar, _end(bar)
        return True


def rows(bars: Iterable[Bar]) -> Iterator[tuple[int, Bar]]:
    """Bars of one lane, by their beginning, each with the first row that is free for it: those
    of one row never overlap."""
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    used = 0
    for bar in bars:
        while busy and busy[0][0] <= bar.began_at:
            heappush(free, heappop(busy)[1])
        if free:
            row = heappop(free)
        else:
            row, used = used, used + 1
        heappush(busy, (_end(bar), row))
        yield row, bar


def _end(bar: Bar) -> float:
    return _FAR if bar.ended_at is None else bar.ended_at


def _in_order(bar: Bar) -> tuple[float, str, int]:
    return bar.began_at, bar.job_id, bar.attempt
