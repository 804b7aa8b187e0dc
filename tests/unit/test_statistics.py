"""Figures of the last hour, day and week: right, in sixty points, and changed by one event."""

from __future__ import annotations

import random

from mam_core.operations.bars import Bar, Dimension, Outcome
from mam_core.operations.statistics import POINTS, Period, Place, Spread, Statistics
from tests.console.story import NOW
from tests.support.rows import each_row


def bar(number: int, ended: float | None, run: float = 30, wait: float = 5, **other: object) -> Bar:
    began = (ended if ended is not None else NOW) - run
    made = Bar(
        *(f"j{number}", 1, "codex", "tmux:a", "", "n", began, ended),
        *(Outcome.COMPLETED if ended is not None else Outcome.RUNNING, "", began - wait),
        *((), 100, 0.5),
    )
    return made._replace(**other)  # type: ignore[arg-type]  # a test's own names


def test_an_hour_has_sixty_points_and_the_last_goes_on() -> None:
    now = NOW - NOW % 60 + 59
    counted = Statistics([bar(1, now - 1), bar(2, now - 130), bar(3, now - 3590), bar(4, None)])
    chart = counted.chart(Period.HOUR, now)
    assert len(chart.points) == POINTS
    assert [at for at, point in enumerate(chart.points) if point.ended] == [0, 57, 59]
    assert chart.total.outcomes == {Outcome.COMPLETED: 3}
    assert (chart.total.tokens, chart.total.cost, chart.per_hour) == (300, 1.5, 3)
    assert (chart.total.waiting.median, chart.total.running.p90) == (5, 30)
    assert chart.points[-1].began_at == now - 59


def test_a_day_and_a_week_reach_further() -> None:
    counted = Statistics([bar(1, NOW - 7000), bar(2, NOW - 80_000), bar(3, NOW - 500_000)])
    told = [counted.chart(period, NOW).total.ended for period in Period]
    assert told == [0, 2, 3]
    assert [period.word for period in Period] == ["hour", "day", "week"]


def test_places_are_told_apart() -> None:
    counted = Statistics(
        [bar(1, NOW - 5, agent="codex", group="g"), bar(2, NOW - 5, agent="gemini", session="b")]
    )
    assert counted.names(Dimension.AGENT) == ["codex", "gemini"]
    assert counted.names(Dimension.GROUP) == ["g"]
    place: Place = (Dimension.AGENT, "gemini")
    assert counted.chart(Period.HOUR, NOW, place).total.ended == 1
    assert counted.chart(Period.HOUR, NOW, (Dimension.SESSION, "nobody")).total.ended == 0


def test_an_attempt_counts_once_and_as_it_is_known_last() -> None:
    counted = Statistics()
    assert not counted.put(bar(1, None)), "it runs"
    assert counted.put(bar(1, NOW - 90))
    assert not counted.put(bar(1, NOW - 90))
    before = counted.chart(Period.HOUR, NOW)
    assert counted.put(bar(1, NOW - 90, cost=2.0, outcome=Outcome.ERROR))
    after = counted.chart(Period.HOUR, NOW)
    assert (before.total.cost, after.total.cost) == (0.5, 2.0)
    assert after.total.outcomes == {Outcome.ERROR: 1}
    assert counted.put(bar(1, None)), "a person set it running again by hand"
    assert counted.chart(Period.HOUR, NOW).total.ended == 0


@each_row(
    ("values", "told"),
    [
        ([], Spread()),
        ([4], Spread(1, 4, 4, 4)),
        ([1, 2], Spread(2, 1, 2, 2)),
        (range(1, 11), Spread(10, 5, 9, 10)),
        (range(100, 0, -1), Spread(100, 50, 90, 100)),
    ],
)
def test_percentiles_are_values_that_were(values: list[float], told: Spread) -> None:
    assert Spread.of(values) == told


def test_what_is_too_old_is_forgotten() -> None:
    counted = Statistics([bar(1, NOW - 10), bar(2, NOW - 9 * 86_400, agent="old")])
    assert len(counted) == 2
    counted.forget(NOW)
    assert len(counted) == 1
    assert counted.names(Dimension.AGENT) == ["codex"]
    assert counted.chart(Period.WEEK, NOW).total.ended == 1


def test_one_after_the_other_gives_the_same_as_all_at_once() -> None:
    chance = random.Random(5)
    latest: dict[str, Bar] = {}
    counted = Statistics()
    for _ in range(800):
        ended = None if chance.random() < 0.1 else NOW - chance.uniform(0, 8 * 86_400)
        one = bar(
            chance.randrange(200),
            ended,
            run=chance.uniform(0, 900),
            wait=chance.uniform(0, 90),
            agent=chance.choice("abc"),
            outcome=chance.choice([Outcome.COMPLETED, Outcome.ERROR]),
        )
        counted.put(one)
        latest[one.job_id] = one
        if chance.random() < 0.05:
            counted.chart(chance.choice(list(Period)), NOW - chance.uniform(0, 999))
    anew = Statistics(latest.values())
    for period in Period:
        for place in (None, (Dimension.AGENT, "a"), (Dimension.AGENT, "b")):
            mine, other = counted.chart(period, NOW, place), anew.chart(period, NOW, place)
            assert mine.total._replace(cost=0) == other.total._replace(cost=0)
            assert [p._replace(cost=0) for p in mine.points] == [
                p._replace(cost=0) for p in other.points
            ]
            assert mine.total.ended == sum(point.ended for point in mine.points)
