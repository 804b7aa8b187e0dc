"""A stretch of time laid over the columns of a screen: which moment stands where, and ticks.

No clock in here: the same axis serves the present and a past that is looked at.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
#: What a person can count in.
_STEPS = (
    *(1, 5, 10, 15, 30),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28, 91, 364)),
)
#: From the nearest look to the farthest.
SPANS = (
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 4, 7, 14, 28, 91, 364)),
)
#: A column has so many parts: as many as there are blocks of different width.
PARTS = 8
#: Between the beginnings of two ticks, in columns; with seconds they are longer.
_APART = 8


class Tick(NamedTuple):
    """A moment with a name."""

    column: int
    words: str


class TimeAxis(NamedTuple):
    """`width` columns for `span` seconds."""

    begin: float
    span: float
    width: int

    @property
    def end(self) -> float:
        return self.begin + self.span

    def part(self, at: float) -> int:
        """How many parts of columns lie before a moment; within the axis."""
        parts = self.width * PARTS
        return max(0, min(parts, round((at - self.begin) / self.span * parts)))

    def column(self, at: float) -> int | None:
        """None: it is not on the axis."""
        column = int((at - self.begin) / self.span * self.width)
        return column if self.begin <= at and column < self.width else None

    def moment(self, column: float) -> float:
        return self.begin + column / self.width * self.span

    def ticks(self) -> Iterator[Tick]:
        """In local time, at moments that a person would name."""
        if self.width < 1:
            return
        step = self._step()
        here = time.localtime(self.begin).tm_gmtoff
        at = ceil((self.begin + here) / step) * step - here
        while at < self.end:
            column = self.column(at)
            if column is not None:
                yield Tick(column, _named(at, step))
            at += step

    def _step(self) -> int:
        column = self.span / self.width
        fitting = (step for step in _STEPS if step >= column * (_APART + 3 * (step < _MINUTE)))
        return next(fitting, _STEPS[-1])

    def words(self) -> str:
        """Its ticks as one line, as wide as the axis; what does not fit whole is left out."""
        line = ""
        for tick in self.ticks():
            if len(line) <= tick.column and tick.column + len(tick.words) <= self.width:
                line = f"{line:<{tick.column}}{tick.words} "
        return f"{line[: self.width]:<{self.width}}"


def _named(at: float, step: int) -> str:
    # A day with a change of the clocks does not end at midnight by seconds: two hours on, it does.
    when = time.localtime(at + (2 * _HOUR if step >= _DAY else 0))
    if step >= _DAY or (when.tm_hour == when.tm_min == when.tm_sec == 0):
        return time.strftime("%b %d", when)
    return time.strftime("%H:%M:%S" if step < _MINUTE else "%H:%M", when)
