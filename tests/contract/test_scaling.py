"""A pass of the autoscaler over a real registry: in every store, and by one process at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mam_core import acts
from mam_core.acts import Acts, Deed
from mam_core.config.tables import AutoscaleSettings, GroupSettings
from mam_core.registry import Registry
from mam_core.stores.base import Paper
from mam_core.work.scaling import Scaler
from tests.support.clock import FakeClock
from tests.support.jobs import add
from tests.support.proc import FakeProc

MakeRegistry = Callable[..., Registry]
ON = AutoscaleSettings(enabled=True, every_sec=60, watch_sec=300, check=None)
OFF = AutoscaleSettings(enabled=False, every_sec=60, watch_sec=300, check=None)
P1 = {"p1": GroupSettings(2, 1, 4, 1 << 30, None)}


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "proc")


def at_work(make: MakeRegistry, jobs: int = 6, **given: Any) -> Registry:
    """A registry whose group p1 has two slots, both taken, and jobs that wait for more."""
    registry = make(slots={"p1": 2}, **given)
    for _ in range(jobs):
        add(registry, group="p1")
    while registry.claim("alpha") is not None:
        pass
    return registry


def scaler(registry: Registry, proc: FakeProc, settings: AutoscaleSettings = ON) -> Scaler:
    return Scaler(registry, settings, P1, proc.look)


def told(registry: Registry) -> Acts:
    return acts.decode(registry.store.paper(Paper.ACTS))


def deeds(registry: Registry) -> list[tuple[Deed, int | None, int]]:
    return [(act.deed, act.after, act.times) for act in told(registry).acts]


def test_n42_n46_one_step_at_a_time_up_and_down(
    make_registry: MakeRegistry, proc: FakeProc, clock: FakeClock
) -> None:
    """Up, five minutes of watch, down twice; what runs goes on, and every step has its figures."""
    registry = at_work(make_registry)
    mine = scaler(registry, proc)
    proc.set(10, 20)
    assert [(act.deed, act.after) for act in mine.once()] == [(Deed.UP, 3)]
    third = registry.claim("alpha")
    assert third is not None
    assert registry.claim("alpha") is None
    for _ in range(4):
        clock.pass_time(60)
        proc.set(10, 20)
        assert [act.why for act in mine.once()] == ["the last change is still watched"]
    for expected in (2, 1):
        clock.pass_time(61)
        proc.set(90, 20)
        assert [(act.deed, act.after) for act in mine.once()] == [(Deed.DOWN, expected)]
    assert registry.get(third.job_id).status == "running"
    assert deeds(registry) == [
        (Deed.UP, 3, 1),
        (Deed.HOLD, 3, 4),
        (Deed.DOWN, 2, 1),
        (Deed.DOWN, 1, 1),
    ]
    last = told(registry).acts[-1]
    assert (last.figures["host"], last.figures["cpu"], last.figures["memory"]) == ("host", 90, 20)
    assert last.by.startswith("autoscaler host:")


def test_n7_a_step_after_which_the_load_is_too_high_is_taken_back(
    make_registry: MakeRegistry, proc: FakeProc, clock: FakeClock
) -> None:
    registry = at_work(make_registry)
    mine = scaler(registry, proc)
    proc.set(10, 20)
    mine.once()
    clock.pass_time(60)
    proc.set(10, 20, load=9.5)
    (act,) = mine.once()
    assert (act.deed, act.before, act.after) == (Deed.TAKEN_BACK, 3, 2)
    assert act.why == "the load of host is 9.50, not below 9.00"
    clock.pass_time(60)
    proc.set(10, 20)
    assert [one.deed for one in mine.once()] == [Deed.HOLD]


def test_off_by_default_only_a_persons_change_is_watched(
    make_registry: MakeRegistry, proc: FakeProc, clock: FakeClock
) -> None:
    registry = at_work(make_registry)
    mine = scaler(registry, proc, OFF)
    proc.set(10, 20)
    assert mine.once() == []
    assert registry.store.paper(Paper.ACTS) is None
    registry.set_slots("p1", 4)
    clock.pass_time(60)
    proc.set(10, 20, swapped=3)
    assert [(act.deed, act.after, act.why) for act in mine.once()] == [
        (Deed.HOLD, 4, "host swapped 3 pages")
    ]
    clock.pass_time(300)
    proc.set(99, 99)
    assert mine.once() == []


def test_one_decides_for_all_until_it_leaves_or_is_not_heard_of(
    make_registry: MakeRegistry, tmp_path: Path, clock: FakeClock
) -> None:
    here, there = FakeProc(tmp_path / "here"), FakeProc(tmp_path / "there")
    first = scaler(at_work(make_registry), here)
    second = scaler(make_registry(slots={"p1": 2}, node="other"), there)
    here.set(10, 20)
    assert first.once() != []
    there.set(95, 20)
    assert second.once() == [], "it tells its figures, and no more"
    clock.pass_time(60)
    here.set(10, 20)
    (act,) = first.once()
    assert (act.deed, act.figures["host"]) == (Deed.DOWN, "other")
    first.leave()
    clock.pass_time(60)
    there.set(50, 20)
    assert [one.deed for one in second.once()] == [Deed.HOLD]
    clock.pass_time(181)
    here.set(50, 20)
    assert first.once() != [], "the other one was killed"


def test_n7_the_operators_own_check_takes_a_step_back(
    make_registry: MakeRegistry, proc: FakeProc, clock: FakeClock
) -> None:
    asked: list[tuple[str, int]] = []

    def check(group: str, slots: int) -> str:
        asked.append((group, slots))
        return "the check queries ended with 1: 3 errors"

    registry = at_work(make_registry)
    mine = Scaler(registry, ON, P1, proc.look, check)
    proc.set(10, 20)
    mine.once()
    clock.pass_time(60)
    proc.set(10, 20)
    (act,) = mine.once()
    assert (act.deed, act.why) == (Deed.TAKEN_BACK, "the check queries ended with 1: 3 errors")
    assert asked == [("p1", 3)]
