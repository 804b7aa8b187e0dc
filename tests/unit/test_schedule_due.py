"""What is due, missed and settled, whatever clocks and processes do."""

from __future__ import annotations

import random
from typing import Any

from mam_core.clock import parse_stamp, stamp
from mam_core.schedules.cron import Cron
from mam_core.schedules.due import GRACE_SEC, MOST_MISSED, Memory, Schedule, decide, in_words
from mam_core.stores.base import Gate, GateKind, Gates
from mam_core.stores.gates_file import decode_gates, encode_gates
from tests.support.clock import NOON

HOUR = 3600.0
HOURLY = Schedule("hourly", "t", HOUR, None, None, "every 3600 s")
TEN = parse_stamp("2026-06-19T10:00:00Z")


def settled(moment: float, schedule: Schedule = HOURLY) -> Memory:
    return Memory(stamp(moment), schedule.rule)


def test_the_first_look_only_begins() -> None:
    """What was due before anybody heard of the schedule is not made up for."""
    due = decide(HOURLY, None, NOON)
    assert (due.fire, due.is_new, due.memory.until) == (None, True, "2026-06-19T09:30:00Z")


def test_nothing_is_due_between_two_moments() -> None:
    due = decide(HOURLY, settled(NOON), NOON + 1799)
    assert (due.fire, due.is_new) == (None, False)


def test_a_moment_is_due_once() -> None:
    due = decide(HOURLY, settled(NOON), TEN + 3)
    assert (due.fire, due.memory.missed_count) == (TEN, 0)
    assert not decide(HOURLY, due.memory, TEN + 3).is_new


def test_of_several_only_the_newest_is_due_and_the_others_are_named() -> None:
    due = decide(HOURLY, settled(NOON), TEN + 3 * HOUR + 5)
    assert due.fire == TEN + 3 * HOUR
    assert [one.at for one in due.memory.missed] == [
        "2026-06-19T10:00:00Z",
        "2026-06-19T11:00:00Z",
        "2026-06-19T12:00:00Z",
    ]


def test_one_that_is_noticed_late_is_missed_unless_it_is_to_be_made_up_for() -> None:
    late = TEN + GRACE_SEC + 1
    due = decide(HOURLY, settled(NOON), late)
    assert (due.fire, due.memory.missed_count) == (None, 1)
    assert due.memory.missed[0].why == "nobody was there to register it"
    caught_up = decide(HOURLY._replace(catch_up=True), settled(NOON), late)
    assert (caught_up.fire, caught_up.memory.missed_count) == (TEN, 0)


def test_a_long_absence_is_counted_and_only_the_newest_are_named() -> None:
    due = decide(HOURLY, settled(NOON), TEN + 99 * HOUR)
    assert due.fire == TEN + 99 * HOUR
    assert (due.memory.missed_count, len(due.memory.missed)) == (99, 10)
    assert due.memory.missed[-1].at == stamp(TEN + 98 * HOUR)


def test_years_of_absence_do_not_take_long() -> None:
    minutely = Schedule("m", "t", None, Cron.parse("* * * * *"), None, "* * * * *")
    secondly = Schedule("s", "t", 1.0, None, None, "every 1s")
    for schedule in (minutely, secondly):
        due = decide(schedule, settled(NOON, schedule), NOON + 10 * 365 * 86400)
        assert due.fire is not None
        assert due.missed_count == due.memory.missed_count == MOST_MISSED


def test_a_clock_that_leaps_leaves_no_missed_ones_behind_for_ever() -> None:
    """Three weeks forward and back again, as a host without a time server may do at its start."""
    minutely = Schedule("m", "t", 60.0, None, None, "every 1m", catch_up=True)
    leapt = decide(minutely, settled(NOON, minutely), NOON + 21 * 86400 + 20)
    assert leapt.fire == NOON + 21 * 86400, "the newest, and once"
    assert in_words(leapt.memory.missed_count) == "1000+"
    again = decide(minutely, leapt.memory, NOON + 21 * 86400 + 80)
    assert (again.missed_count, again.fire) == (0, NOON + 21 * 86400 + 60), "said once"
    assert again.memory.missed_count == MOST_MISSED
    back = decide(minutely, again.memory, NOON + 60)
    assert (back.memory.missed_count, back.memory.missed) == (0, ())
    assert decide(minutely, back.memory, NOON + 120).fire == NOON + 120


def test_what_was_missed_is_forgotten_after_a_week_without() -> None:
    missed = decide(HOURLY, settled(NOON), TEN + 3 * HOUR).memory
    assert missed.missed_count == 3
    later = decide(HOURLY, missed._replace(until=stamp(TEN + 150 * HOUR)), TEN + 150.5 * HOUR)
    assert (later.is_new, later.memory.missed_count) == (False, 3)
    later = decide(HOURLY, missed._replace(until=stamp(TEN + 171 * HOUR)), TEN + 171.5 * HOUR)
    assert (later.is_new, later.memory.missed_count) == (False, 0)


def test_a_clock_that_goes_back_makes_nothing_twice() -> None:
    due = decide(HOURLY, settled(NOON), TEN + 1)
    for back in (5, 600, 7200):
        again = decide(HOURLY, due.memory, TEN + 1 - back)
        assert (again.fire, again.is_new) == (None, False)


def test_a_clock_that_was_wrong_by_a_year_does_not_silence_it_for_a_year() -> None:
    wrong = decide(HOURLY, settled(NOON), TEN + 365 * 86400)
    right = decide(HOURLY, wrong.memory, TEN + 60)
    assert (right.fire, right.memory.until) == (None, stamp(TEN + 60))
    assert decide(HOURLY, right.memory, TEN + HOUR).fire == TEN + HOUR


def test_another_rule_has_missed_nothing_yet() -> None:
    daily = Schedule("hourly", "t", 86400.0, None, None, "every 86400 s")
    due = decide(HOURLY, settled(NOON - 5 * HOUR, daily), TEN + 1)
    assert (due.fire, due.memory.missed_count, due.memory.rule) == (TEN, 0, HOURLY.rule)


def test_what_passed_during_a_pause_counts_for_nothing() -> None:
    due = decide(HOURLY, settled(NOON), TEN + 2 * HOUR + 1, open_since=TEN + HOUR + 60)
    assert (due.fire, due.memory.missed_count) == (TEN + 2 * HOUR, 0)


def test_a_memory_that_nobody_can_read_begins_anew() -> None:
    for kept in (None, {}, {"until": 7}, {"until": "x"}, {"until": stamp(NOON), "missed": 3}):
        assert Memory.read(kept) is None
    due = decide(HOURLY, settled(NOON), TEN + 3 * HOUR)
    assert Memory.read(due.memory.to_dict()) == due.memory


def test_however_the_clock_jumps_no_moment_is_due_twice() -> None:
    """Within a day back and any time forward, two processes taking turns."""
    chance = random.Random(7)
    for _ in range(50):
        now, memory, fired = NOON, settled(NOON), list[float]()
        for _ in range(40):
            now += chance.choice([1, 30, 900, 3600, 8000, -20, -1800, -40000])
            due = decide(HOURLY, memory, now)
            memory = due.memory
            if due.fire is not None:
                fired.append(due.fire)
        assert len(fired) == len(set(fired))
        assert fired == sorted(fired)


def test_whoever_changes_one_thing_that_is_kept_forgets_no_other() -> None:
    """Pauses, slots and schedules are one document: a change of one carries the others along."""
    gate = Gate(GateKind.GROUP, "g", "then")
    whole = Gates((gate,), {"g": 1}, {"s": settled(NOON).to_dict()})
    changes: dict[str, Any] = {
        "with_gate": (Gate(GateKind.ALL, "", "now"),),
        "with_schedule": ("other", {}),
        "with_slots": ("other", 2),
        "without": (GateKind.GROUP, "nobody"),
    }
    assert {name for name in dir(Gates) if name.startswith("with")} == set(changes)
    for name, words in changes.items():
        new = getattr(whole, name)(*words)
        assert gate in new.closed, name
        assert new.slots["g"] == 1, name
        assert "s" in new.schedules, name
        assert decode_gates(encode_gates(new), "here") == new
