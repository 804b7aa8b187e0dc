"""Is an agent at work that says nothing, and has it spent too much?"""

from __future__ import annotations

from typing import Any

from mam_core.agents.streams.base import Happening, Kind
from mam_core.records import Job, Status
from mam_core.work.activity import Activity, MemoryNews, over_budget
from mam_core.work.reports import Usage
from tests.support.rows import each_row

NOTHING = Usage(processes=1, memory=1 << 20, cpu_sec=10.0, io_bytes=1000, net_bytes=1000)


def busy_after(**more: Any) -> bool:
    activity = Activity()
    activity.is_busy(NOTHING, 100.0)
    return activity.is_busy(NOTHING._replace(**more), 101.0)


class TestActivity:
    def test_the_first_sample_says_nothing(self) -> None:
        assert not Activity().is_busy(NOTHING, 100.0)

    @each_row(
        ("more", "busy"),
        [
            ({}, False),
            ({"cpu_sec": 10.02}, False),  # a clock that ticks
            ({"cpu_sec": 10.5}, True),
            ({"io_bytes": 1100}, False),
            ({"io_bytes": 100_000}, True),
            ({"net_bytes": 1100}, False),  # a connection that is kept alive
            ({"net_bytes": 100_000}, True),
            ({"memory": 1 << 30}, False),
            ({"net_bytes": None}, False),
        ],
    )
    def test_work_is_cpu_or_bytes(self, more: dict[str, Any], busy: bool) -> None:
        assert busy_after(**more) is busy

    def test_traffic_that_cannot_be_told_is_none(self) -> None:
        activity = Activity()
        quiet = NOTHING._replace(net_bytes=None)
        activity.is_busy(quiet, 100.0)
        assert not activity.is_busy(quiet, 101.0)

    def test_samples_are_compared_with_the_one_before(self) -> None:
        activity = Activity()
        loud = NOTHING._replace(cpu_sec=20.0)
        assert [
            activity.is_busy(each, at) for at, each in ((1, NOTHING), (2, loud), (3, loud))
        ] == [
            *(False, True, False),
        ]


def job(**limits: Any) -> Job:
    return Job("abc12345", Status.RUNNING, **limits)


class TestBudget:
    def test_cost_is_told_with_its_limit(self) -> None:
        spent = Happening(Kind.COST, "", {"cost": 2.5})
        assert over_budget(job(max_cost=2.0), spent) == "it cost $2.50 of $2.00"
        assert over_budget(job(max_cost=2.5), spent) == ""
        assert over_budget(job(), spent) == ""

    def test_tokens_are_those_of_both_directions(self) -> None:
        spent = Happening(Kind.TOKENS, "", {"input": 900, "output": 200, "cached": 800})
        assert over_budget(job(max_tokens=1000), spent) == "it used 1,100 tokens of 1,000"
        assert over_budget(job(max_tokens=1100), spent) == ""

    def test_a_cost_that_is_not_told_is_none(self) -> None:
        assert over_budget(job(max_cost=0.01), Happening(Kind.COST, "", {"cost": None})) == ""

    def test_nothing_else_costs(self) -> None:
        assert over_budget(job(max_cost=0.01, max_tokens=1), Happening(Kind.TEXT, "99")) == ""


class TestMemory:
    def told(self, *sizes_mib: int) -> list[tuple[int, int]]:
        news, found = MemoryNews(), []
        for size in sizes_mib:
            if one := news.of(NOTHING._replace(memory=size << 20)):
                found.append((one["memory"] >> 20, one["peak_memory"] >> 20))
        return found

    def test_a_small_command_is_worth_no_word(self) -> None:
        assert self.told(1, 20, 60, 79) == []

    def test_a_peak_is_told_each_time_that_it_has_grown_by_a_quarter(self) -> None:
        assert self.told(100, 110, 124, 125, 90, 150, 157) == [(100, 100), (125, 125), (157, 157)]

    def test_few_events_tell_of_any_size(self) -> None:
        assert len(self.told(*range(0, 64_000, 50))) < 35
