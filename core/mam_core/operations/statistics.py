"""How many attempts ended, how, how long they waited and ran, and what they cost.

For the last hour, day and week, each in sixty points, of everything or of one agent,
group, session or node. An attempt that ends changes one point of each; a point's
percentiles are worked out when somebody looks at it, and kept until it changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from math import ceil
from typing import NamedTuple

from mam_core.operations.bars import Bar, Dimension, Outcome

POINTS = 60
_MINUTE = 60


class Period(Enum):
    """How far back; the value is the seconds of one point."""

    HOUR = 60
    DAY = 24 * 60
    WEEK = 7 * 24 * 60

    @property
    def span_sec(self) -> int:
        return self.value * POINTS

    @property
    def word(self) -> str:
        return self.name.lower()


class Spread(NamedTuple):
    """How some durations lie; None where there is none."""

    size: int = 0
    median: float | None = None
    p90: float | None = None
    most: float | None = None

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        ordered = sorted(values)
        if not ordered:
            return cls()
        return cls(len(ordered), _at(ordered, 0.5), _at(ordered, 0.9), ordered[-1])


class Point(NamedTuple):
    """What ended in one stretch of time."""

    began_at: float
    width_sec: float
    outcomes: dict[Outcome, int]
    waiting: Spread  #: seconds from the queue to the claim
    running: Spread  #: seconds from the claim to the end
    tokens: int
    cost: float

    @property
    def ended(self) -> int:
        return sum(self.outcomes.values())


class Chart(NamedTuple):
    """Sixty points, the last one still going on, and all of them as one."""

    period: Period
    points: tuple[Point, ...]
    total: Point

    @property
    def per_hour(self) -> float:
        """Throughput: attempts that ended."""
        return self.total.ended * 3600 / self.period.span_sec


#: Where a figure is looked for: in everything, or under one name of a dimension.
Place = tuple[Dimension, str] | None


class _Series:
    """One place: attempts by the minute in which they ended, which every period is made of."""

    def __init__(self) -> None:
        self.minutes: dict[int, dict[tuple[str, int], Bar]] = {}
        self._points: dict[tuple[Period, int], Point] = {}
        self._totals: dict[tuple[Period, int], Point] = {}

    def add(self, bar: Bar, ended_at: float) -> None:
        minute = int(ended_at // _MINUTE)
        self.minutes.setdefault(minute, {})[bar.key] = bar
        self._forget_points(minute)

    def drop(self, bar: Bar, ended_at: float) -> None:
        minute = int(ended_at // _MINUTE)
        bars = self.minutes.get(minute, {})
        bars.pop(bar.key, None)
        if not bars:
            self.minutes.pop(minute, None)
        self._forget_points(minute)

    def forget_before(self, minute: int) -> None:
        for old in [one for one in self.minutes if one < minute]:
            del self.minutes[old]
        self._points.clear()
        self._totals.clear()

    def point(self, period: Period, number: int) -> Point:
        known = self._points.get((period, number))
        if known is None:
            known = self._points[period, number] = self._made(period, number, 1)
        return known

    def total(self, period: Period, first: int) -> Point:
        known = self._totals.get((period, first))
        if known is None:
            known = self._made(period, first, POINTS)
            self._totals = {(period, first): known}  # the next one's window is another
        return known

    def _made(self, period: Period, first: int, points: int) -> Point:
        minutes = period.value // _MINUTE
        begin, end = first * minutes, (first + points) * minutes
        if end - begin <= len(self.minutes):
            chosen = [own for n in range(begin, end) if (own := self.minutes.get(n))]
        else:
            chosen = [own for n, own in self.minutes.items() if begin <= n < end]
        bars = [bar for own in chosen for bar in own.values()]
        return _point(first * period.value, points * period.value, bars)

    def _forget_points(self, minute: int) -> None:
        if not self._points and not self._totals:  # nobody has looked yet: ten thousand may come
            return
        for period in Period:
            self._points.pop((period, minute * _MINUTE // period.value), None)
        self._totals.clear()


class Statistics:
    """Attempts that have ended, counted under everything that they belong to."""

    def __init__(self, bars: Iterable[Bar] = ()) -> None:
        self._known: dict[tuple[str, int], Bar] = {}
        self._series: dict[Place, _Series] = {}
        for bar in bars:
            self.put(bar)

    def __len__(self) -> int:
        return len(self._known)

    def put(self, bar: Bar) -> bool:
        """An attempt; True when it changes a figure. One that runs counts when it has ended."""
        known = self._known.get(bar.key)
        if known == bar or (known is None and bar.ended_at is None):
            return False
        if known is not None and known.ended_at is not None:
            for series in self._all(known):
                series.drop(known, known.ended_at)
            del self._known[bar.key]
        if bar.ended_at is not None:
            self._known[bar.key] = bar
            for series in self._all(bar):
                series.add(bar, bar.ended_at)
        return True

    def chart(self, period: Period, now: float, place: Place = None) -> Chart:
        """The points up to `now`."""
        first = int(now // period.value) - POINTS + 1
        series = self._series.get(place) or _Series()
        points = tuple(series.point(period, number) for number in range(first, first + POINTS))
        return Chart(period, points, series.total(period, first))

    def names(self, dimension: Dimension) -> list[str]:
        """What there is to choose from."""
        chosen = {place[1] for place in self._series if place and place[0] is dimension}
        return sorted(name for name in chosen if name)

    def forget(self, now: float) -> None:
        """What no chart can show any more; worth doing once in a while."""
        limit = int((now - Period.WEEK.span_sec - Period.WEEK.value) // _MINUTE)
        for series in self._series.values():
            series.forget_before(limit)
        kept = {
            key: bar
            for key, bar in self._known.items()
            if bar.ended_at is not None and bar.ended_at >= limit * _MINUTE
        }
        self._known = kept
        self._series = {place: one for place, one in self._series.items() if one.minutes}

    def _all(self, bar: Bar) -> list[_Series]:
        places: list[Place] = [None, *((one, bar.under(one)) for one in Dimension)]
        found = []
        for place in places:
            series = self._series.get(place)
            if series is None:
                series = self._series[place] = _Series()
            found.append(series)
        return found


def _point(began_at: float, width: float, bars: Iterable[Bar]) -> Point:
    outcomes: Counter[Outcome] = Counter()
    waiting, running = [], []
    tokens, cost = 0, 0.0
    for bar in bars:
        outcomes[bar.outcome] += 1
        if (waited := bar.waiting_sec) is not None:
            waiting.append(waited)
        if (ran := bar.run_sec) is not None:
            running.append(ran)
        tokens += bar.tokens or 0
        cost += bar.cost or 0.0
    return Point(
        float(began_at),
        float(width),
        dict(outcomes),
        Spread.of(waiting),
        Spread.of(running),
        tokens,
        cost,
    )


def _at(ordered: list[float], share: float) -> float:
    """A value that really was: the first that at least this share does not exceed."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]
