"""The autoscaler's rules, driven by a /proc of the test's own (N42 to N46, N6, N7)."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from mam_core.acts import Act, Acts, Deed
from mam_core.machine import Figures, Gauge, Machine
from mam_core.work.autoscale import Scaled, Watch, ceiling, decide, rule, trouble_with
from mam_core.work.capacity import advice
from mam_core.work.check_command import objection
from tests.support.proc import TOTAL, FakeProc
from tests.support.rows import each_row

GIB = 1 << 30
FULL = Scaled(4, running=4, low=1, high=8)


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "proc")


def seen(proc: FakeProc) -> dict[str, Figures]:
    figures = proc.look()
    assert figures is not None
    return {"host": figures}


class TestTheTable:
    @each_row(
        ("cpu", "memory", "deed"),
        [
            (0, 0, Deed.UP),
            (39, 59, Deed.UP),
            (39, 60, Deed.HOLD),
            (40, 59, Deed.HOLD),
            (40, 60, Deed.HOLD),
            (39, 80, Deed.HOLD),
            (80, 59, Deed.HOLD),
            (80, 80, Deed.HOLD),
            (81, 0, Deed.DOWN),
            (0, 81, Deed.DOWN),
            (100, 100, Deed.DOWN),
        ],
    )
    def test_n42_n43_n44_by_figures_of_proc(
        self, proc: FakeProc, cpu: int, memory: int, deed: Deed
    ) -> None:
        """Exactly on an edge is no reason for a step."""
        hosts = seen(proc.set(cpu, memory))
        assert (hosts["host"].cpu, hosts["host"].memory) == (cpu, memory)
        decision = decide(FULL, hosts, None, TOTAL)
        assert decision.deed is deed
        assert decision.slots == 4 + {Deed.UP: 1, Deed.HOLD: 0, Deed.DOWN: -1}[deed]

    @each_row(
        ("cpu", "memory", "deed"),
        [
            (39.99, 59.99, Deed.UP),
            (40.0, 59.99, Deed.HOLD),
            (39.99, 60.0, Deed.HOLD),
            (80.0, 80.0, Deed.HOLD),
            (80.01, 10.0, Deed.DOWN),
            (10.0, 80.01, Deed.DOWN),
        ],
    )
    def test_n42_n43_the_edges_to_a_hundredth(self, cpu: float, memory: float, deed: Deed) -> None:
        assert rule(cpu, memory) is deed

    def test_of_several_hosts_the_busiest_speaks_for_all(self) -> None:
        idle = Figures(10, 5, 5, TOTAL, 0.1, 0)
        busy, between = idle._replace(cpu=99), idle._replace(cpu=50)
        assert decide(FULL, {"a": idle, "b": idle}, None, TOTAL).deed is Deed.UP
        assert decide(FULL, {"a": idle, "b": between}, None, TOTAL).deed is Deed.HOLD
        down = decide(FULL, {"a": idle, "b": busy}, None, TOTAL)
        assert (down.deed, down.why) == (Deed.DOWN, "CPU above 80 % on b")

    def test_a_machine_that_tells_nothing_changes_nothing(self, tmp_path: Path) -> None:
        """macOS: there is no /proc."""
        gauge = Gauge(str(tmp_path / "none"))
        assert [gauge.look(), gauge.look()] == [None, None]
        assert decide(FULL, {}, None, None).deed is Deed.HOLD


class TestBounds:
    def test_n45_no_step_beyond_min_and_max(self, proc: FakeProc) -> None:
        idle = seen(proc.set(0, 0))
        assert decide(Scaled(8, 8, 1, 8), idle, None, TOTAL).why == "it is at its max"
        busy = seen(proc.set(100, 0))
        assert decide(Scaled(1, 1, 1, 8), busy, None, TOTAL).deed is Deed.HOLD
        assert decide(Scaled(1, 1, None, 8), busy, None, TOTAL).deed is Deed.HOLD
        assert decide(Scaled(1, 1, 0, 8), busy, None, TOTAL).slots == 0

    @pytest.mark.parametrize(("free", "deed"), [(4 * GIB, Deed.UP), (4 * GIB - 1, Deed.HOLD)])
    def test_n45_no_step_up_without_the_memory_of_one_job(
        self, proc: FakeProc, free: int, deed: Deed
    ) -> None:
        idle = seen(proc.set(0, 0))
        assert decide(FULL._replace(memory=4 * GIB), idle, None, free).deed is deed

    def test_n44_never_in_leaps(self, proc: FakeProc) -> None:
        """A slot that nobody takes now would be taken in one leap with others later."""
        group, idle = Scaled(1, 1, 1, 50), seen(proc.set(0, 0))
        for expected in range(2, 10):
            decision = decide(group, idle, None, TOTAL)
            assert decision.slots == expected
            group = group._replace(slots=expected, running=expected)
        assert decide(group._replace(running=3), idle, None, TOTAL).why == "there are free slots"

    def test_a_group_without_max_grows_as_far_as_its_size_allows(self) -> None:
        hosts = {"a": Figures(10, 0, 0, 100 * GIB, 0, 0)}
        assert ceiling(3, 1, hosts, memory=GIB, cpu=1) == 3
        assert ceiling(None, 2, hosts, memory=10 * GIB, cpu=None) == 10
        assert ceiling(None, 2, hosts, memory=10 * GIB, cpu=2) == 4
        assert ceiling(None, 2, hosts, memory=None, cpu=None) is None
        assert "no max" in decide(Scaled(2, 2), hosts, None, TOTAL).why


class TestTheWatch:
    @pytest.mark.parametrize(
        ("load", "swapped", "words"),
        [
            (8.99, 0, ""),
            (9.0, 0, "the load of host is 9.00, not below 9.00"),
            (0.5, 1, "host swapped 1 pages"),
        ],
    )
    def test_n7_load_and_swapping(
        self, proc: FakeProc, load: float, swapped: int, words: str
    ) -> None:
        assert trouble_with(seen(proc.set(10, 10, load=load, swapped=swapped))) == words

    def test_n7_our_own_step_is_taken_back(self, proc: FakeProc) -> None:
        watch = Watch(3, is_ours=True, was_up=True, trouble="host swapped 9 pages")
        decision = decide(FULL, seen(proc.set(0, 0)), watch, TOTAL)
        assert decision == (Deed.TAKEN_BACK, 3, "host swapped 9 pages")

    def test_n7_a_persons_change_is_only_told_of(self, proc: FakeProc) -> None:
        watch = Watch(3, is_ours=False, was_up=True, trouble="host swapped 9 pages")
        decision = decide(FULL, seen(proc.set(0, 0)), watch, TOTAL)
        assert decision == (Deed.HOLD, 4, "host swapped 9 pages")

    def test_n7_while_it_lasts_no_further_step_up_but_one_down(self, proc: FakeProc) -> None:
        watch = Watch(3, is_ours=True, was_up=True)
        assert decide(FULL, seen(proc.set(0, 0)), watch, TOTAL).deed is Deed.HOLD
        assert decide(FULL, seen(proc.set(99, 0)), watch, TOTAL).deed is Deed.DOWN


class TestTheOperatorsCheck:
    def test_n7_says_yes_by_0_and_no_in_its_own_words(self, tmp_path: Path) -> None:
        stop = threading.Event()
        given = {"MAM_GROUP": "p1", "MAM_SLOTS": "4"}
        line = 'echo first; echo "$MAM_GROUP has \033[31m$MAM_SLOTS"; exit 3'
        assert objection(("/bin/sh", "-c", "exit 0"), given, stop) == ""
        words = objection(("/bin/sh", "-c", line), given, stop)
        assert words.startswith("the check sh ended with 3: p1 has ")
        assert words.endswith("4")
        assert "\x1b" not in words
        assert "cannot be run" in objection((str(tmp_path / "none"),), given, stop)

    def test_one_that_hangs_is_ended_and_objects(self) -> None:
        words = objection(("/bin/sleep", "600"), {}, threading.Event(), patience_sec=0.2)
        assert words == "the check sleep did not end within 0.2 s"

    def test_one_that_hangs_holds_nobody_up_who_is_to_end(self) -> None:
        stop = threading.Event()
        stop.set()
        assert objection(("/bin/sleep", "600"), {}, stop) == ""


class TestTheFormula:
    """N6: ``min(avail_mem * 0.8 / job_mem, cores * 0.8 / job_cpu)``."""

    @each_row(
        ("memory", "cpu", "by_memory", "by_cpu", "fits"),
        [
            (4 * GIB, 0.5, 8.0, 12.8, 8),
            (GIB, 2.0, 32.0, 3.2, 3),
            (64 * GIB, 1.0, 0.5, 6.4, 0),
            (None, 1.0, None, 6.4, 6),
            (4 * GIB, None, 8.0, None, 8),
            (None, None, None, None, None),
        ],
    )
    def test_n6(
        self,
        memory: int | None,
        cpu: float | None,
        by_memory: float | None,
        by_cpu: float | None,
        fits: int | None,
    ) -> None:
        found = advice(Machine(8, 0.0, 64 * GIB, 40 * GIB), memory=memory, cpu=cpu)
        assert (found.by_memory, found.by_cpu, found.fits) == (by_memory, by_cpu, fits)


class TestTheActs:
    def test_what_is_held_again_and_again_is_counted_with_the_newest_figures(self) -> None:
        paper = Acts()
        for minute in range(3):
            at = f"2026-06-19T09:3{minute}:00.000Z"
            why = f"the load of host is {minute}.50, not below 9.00"
            paper = paper.with_act(Act(at, "x", Deed.HOLD, "p1", 2, 2, why, {"cpu": minute}))
        (act,) = paper.acts
        assert (act.times, act.since, act.figures) == (3, "2026-06-19T09:30:00.000Z", {"cpu": 2})
        paper = paper.with_act(act._replace(why="something else", times=1))
        assert len(paper.acts) == 2
