"""A figure: ours against a yardstick, round by round, and the goal it is held against."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bench.rounds import Spread, ratios


class Wrong(Exception):
    """Not slow but wrong: a job handed out twice, two answers that should be one."""


class Measure(StrEnum):
    """What the ratio counts, and so which way is better."""

    SPEED = "times as fast"  #: a goal is a least
    COST = "times the time"  #: a goal is a most
    AMOUNT = "times as much"  #: likewise, of what is no time


class Unit(StrEnum):
    """What the samples are."""

    SECONDS = "seconds"
    BYTES = "bytes"
    COUNT = "count"


@dataclass(frozen=True)
class Figure:
    """One line of the report; the samples are seconds for one operation, where nothing is said."""

    name: str
    what: str
    against: str
    measure: Measure
    ours: list[float]
    theirs: list[float]
    goal: float | None = None  #: without one, the line is there to be read beside the others
    stretch: float | None = None
    unit: Unit = Unit.SECONDS

    @property
    def ratio(self) -> Spread:
        if self.measure is Measure.SPEED:
            return Spread.of(ratios(self.theirs, self.ours))
        return Spread.of(ratios(self.ours, self.theirs))

    @property
    def is_reached(self) -> bool | None:
        return None if self.goal is None else self._meets(self.goal)

    @property
    def is_stretch_reached(self) -> bool | None:
        return None if self.stretch is None else self._meets(self.stretch)

    def _meets(self, goal: float) -> bool:
        measured = self.ratio.median
        return measured >= goal if self.measure is Measure.SPEED else measured <= goal
