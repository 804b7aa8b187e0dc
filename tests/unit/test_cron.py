"""The five fields of cron: what they take, when they come, and what clocks that change do."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from mam_core.schedules.cron import Cron, Zone, check_zone, zone_named
from tests.support.rows import each_row

UTC = datetime.UTC
BERLIN = ZoneInfo("Europe/Berlin")  # clocks go forward on 2026-03-29 at 02:00, back on 2026-10-25


def at(text: str) -> float:
    moment = datetime.datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def times(rule: str, since: str, count: int, zone: Zone = UTC) -> list[str]:
    """The next moments, in UTC, as a person writes them."""
    found = Cron.parse(rule).moments(at(since), zone)
    return [
        datetime.datetime.fromtimestamp(next(found), UTC).strftime("%m-%d %H:%M")
        for _ in range(count)
    ]


@each_row(
    ("rule", "expected"),
    [
        ("* * * * *", ["06-19 09:31", "06-19 09:32"]),
        ("*/15 * * * *", ["06-19 09:45", "06-19 10:00"]),
        ("5/20 * * * *", ["06-19 09:45", "06-19 10:05"]),
        ("0 3 * * *", ["06-20 03:00", "06-21 03:00"]),
        ("30 9 * * *", ["06-20 09:30", "06-21 09:30"]),
        ("0 9-17/4 * * *", ["06-19 13:00", "06-19 17:00"]),
        ("0 0 1,15 * *", ["07-01 00:00", "07-15 00:00"]),
        ("0 0 31 * *", ["07-31 00:00", "08-31 00:00"]),
        ("0 0 * jan,JUL *", ["07-01 00:00", "07-02 00:00"]),
        ("0 12 * * mon-fri", ["06-19 12:00", "06-22 12:00"]),
        ("0 12 * * 7", ["06-21 12:00", "06-28 12:00"]),
        ("0 12 * * 5-7", ["06-19 12:00", "06-20 12:00"]),
        ("0 0 20 * mon", ["06-20 00:00", "06-22 00:00"]),  # either will do
        ("0 0 */10 * mon", ["08-31 00:00", "09-21 00:00"]),  # a star is no day: both must fit
        ("@hourly", ["06-19 10:00", "06-19 11:00"]),
        ("@weekly", ["06-21 00:00", "06-28 00:00"]),
    ],
)
def test_when_it_comes(rule: str, expected: list[str]) -> None:
    assert times(rule, "2026-06-19T09:30:00", 2) == expected


def test_the_29th_of_february_is_found_across_a_century() -> None:
    found = Cron.parse("0 0 29 2 *").after(at("2096-03-01T00:00:00"), UTC)
    assert found == at("2104-02-29T00:00:00")


@each_row(
    ("rule", "named"),
    [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("* * * * * *", "five fields"),
        ("60 * * * *", "'60' is no minute"),
        ("* 24 * * *", "'24' is no hour"),
        ("* * 0 * *", "'0' is no day"),
        ("* * * 13 *", "'13' is no month"),
        ("* * * * 8", "'8' is no weekday"),
        ("* * * * fri-mon", "'fri-mon' is no weekday"),
        ("*/0 * * * *", "'*/0' is no minute"),
        ("5-1 * * * *", "'5-1' is no minute"),
        ("1,,2 * * * *", "'' is no minute"),
        ("-5 * * * *", "'-5' is no minute"),
        ("1;rm * * * *", "is no minute"),
        ("٣ * * * *", "is no minute"),
        ("0 0 30 2 *", "never comes"),
        ("0 0 31 4,6,9,11 *", "never comes"),
    ],
)
def test_a_mistake_is_named(rule: str, named: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Cron.parse(rule)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


class TestClocksChange:
    def test_a_skipped_time_comes_at_the_change(self) -> None:
        """02:30 is not on that day: it is half past one hour after 01:30, which shows as 03:30."""
        assert times("30 2 * * *", "2026-03-28T12:00:00+01:00", 2, BERLIN) == [
            "03-29 01:30",
            "03-30 00:30",
        ]

    def test_two_times_that_fall_together_are_one(self) -> None:
        assert times("30 2,3 * * *", "2026-03-28T12:00:00+01:00", 2, BERLIN) == [
            "03-29 01:30",
            "03-30 00:30",
        ]

    def test_a_time_that_comes_twice_is_meant_once(self) -> None:
        assert times("30 2 * * *", "2026-10-24T12:00:00+02:00", 2, BERLIN) == [
            "10-25 00:30",
            "10-26 01:30",
        ]

    @pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
    def test_every_quarter_of_an_hour_stays_one(self, day: str) -> None:
        found = Cron.parse("*/15 * * * *").moments(at(f"{day}T00:00:00+01:00") - 900, BERLIN)
        moments = [next(found) for _ in range(40)]
        assert {b - a for a, b in pairwise(moments)} == {900.0}

    def test_each_moment_of_two_years_comes_once_and_in_order(self) -> None:
        """Whatever the clocks do, a daily rule is daily."""
        for rule in ("0 0 * * *", "30 2 * * *", "59 23 * * *"):
            found = Cron.parse(rule).moments(at("2026-01-01T00:00:00"), BERLIN)
            moments = [next(found) for _ in range(730)]
            gaps = {b - a for a, b in pairwise(moments)}
            assert gaps <= {82800.0, 86400.0, 90000.0}
            assert moments == sorted(set(moments))

    def test_the_clock_of_the_host_counts_where_no_zone_is_said(self, in_new_york: None) -> None:
        assert times("30 2 * * *", "2026-03-07T12:00:00-05:00", 2, None) == [
            "03-08 07:30",  # 02:30 is skipped there on that day
            "03-09 06:30",
        ]


@pytest.fixture
def in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@each_row("name", ["Mars/Olympus", "../etc/passwd", "/etc/localtime", "a\0b", "tzdata.zi", ""])
def test_a_zone_that_there_is_not(name: str) -> None:
    for check in (zone_named, check_zone):
        with pytest.raises(ValueError, match="knows no time zone"):
            check(name)


def test_zones_that_there_are() -> None:
    for name in ("UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"):
        check_zone(name)
        assert zone_named(name) is not None
