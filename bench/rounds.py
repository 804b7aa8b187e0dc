"""Rounds: everybody does a little in turn, again and again, and is compared within a round.

A disk or a neighbour that is slow for a while is slow for all of a round. So a
rate means little here, the ratio of two rates of one round means much, and the
median of such ratios is what we report, with the lowest and the highest beside it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

T = TypeVar("T")

#: Seconds for one operation, by runner; one number a round.
Samples = dict[str, list[float]]


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Runner:
    """One side of a comparison."""

    name: str
    work: Callable[[], int]  #: does a bounded number of operations, and answers how many
    before: Callable[[], object] = _nothing  #: not timed


class Spread(NamedTuple):
    """What a set of numbers comes to."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


def in_turn(sides: Sequence[T], turn: int) -> Iterator[T]:
    """All sides, each round beginning with another: no place in the order is anybody's for good."""
    first = turn % len(sides)
    yield from sides[first:]
    yield from sides[:first]


def run(
    runners: Sequence[Runner], rounds: int, now: Callable[[], float] = time.perf_counter
) -> Samples:
    samples: Samples = {runner.name: [] for runner in runners}
    for turn in range(rounds):
        for runner in in_turn(runners, turn):
            runner.before()
            began = now()
            done = runner.work()
            samples[runner.name].append((now() - began) / done)
    return samples


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """Round by round."""
    return [above / below for above, below in zip(over, under, strict=True)]


def less(values: Sequence[float], base: Sequence[float]) -> list[float]:
    """Round by round, what is left of `values` without what everybody pays."""
    return [value - paid for value, paid in zip(values, base, strict=True)]
