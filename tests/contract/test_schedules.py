"""A moment of a schedule is one job, in every store, whoever looks at the clock and dies of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from mam_core.config import Config, load
from mam_core.errors import MamError, TransitionRefused
from mam_core.operations import schedule
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.stores.base import GateKind, Query
from tests.contract.conftest import MakeRegistry
from tests.support.clock import FakeClock

SETTINGS = """
[templates.report]
prompt = "count the stars"
agent = "shell"
agent_session = "tmux:a"
[schedules.half]
every = "30m"
template = "report"
[schedules.nightly]
cron = "0 3 * * *"
timezone = "UTC"
template = "report"
catch_up = true
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "mam.toml").write_text(SETTINGS)
    return load(cwd=str(tmp_path), environ={})


def keys(registry: Registry) -> list[str]:
    found = registry.store.bodies(Query())
    return sorted(job.key or "" for job in found if isinstance(job, Job))


def test_each_moment_is_one_job(registry: Registry, config: Config, clock: FakeClock) -> None:
    """Also when the job of before is over long since: its key alone would not keep it apart."""
    assert [one.job_id for one in schedule.run(registry, config, [])] == ["", ""]
    clock.pass_time(1800)
    half, nightly = schedule.run(registry, config, [])
    assert (half.at, nightly.job_id) == ("2026-06-19T10:00:00Z", "")
    registry.set_status(half.job_id, Status.COMPLETED)
    assert schedule.run(registry, config, [])[0].job_id == ""
    assert keys(registry) == ["schedule:half:2026-06-19T10:00:00Z"]
    clock.pass_time(1800)
    assert schedule.run(registry, config, [])[0].job_id
    assert len(keys(registry)) == 2


def test_it_works_where_its_settings_stand(
    registry: Registry, config: Config, clock: FakeClock, tmp_path: Path
) -> None:
    """AP-11: whoever happens to register it may stand anywhere."""
    (fired,) = schedule.run(registry, config, ["half"])
    assert registry.get(fired.job_id).workdir == str(tmp_path)


def test_many_at_once_make_one(
    make_registry: MakeRegistry, config: Config, clock: FakeClock
) -> None:
    schedule.run(make_registry(), config, [])
    clock.pass_time(1800)
    others = [make_registry() for _ in range(4)]
    found: list[str] = []

    def look(registry: Registry) -> None:
        found.extend(one.job_id for one in schedule.run(registry, config, []) if one.job_id)

    threads = [threading.Thread(target=look, args=(one,)) for one in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1
    assert len(keys(others[0])) == 1


def test_a_pause_that_somebody_else_makes_forgets_no_moment(
    make_registry: MakeRegistry, config: Config, clock: FakeClock
) -> None:
    """Pauses and schedules are kept together; who changes one must not bring back old others."""
    one, other = make_registry(), make_registry()
    schedule.run(one, config, [])
    for number in range(5):
        clock.pass_time(1800)
        threads = [
            threading.Thread(target=schedule.run, args=(one, config, [])),
            threading.Thread(target=other.pause, args=(GateKind.GROUP, f"g{number}")),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for job in one.store.find(Query(frozenset({Status.PENDING})))[0]:
            one.set_status(job.job_id, Status.COMPLETED)
        assert schedule.run(other, config, [])[0].job_id == ""
    assert len(keys(one)) == 5
    assert len(other.store.facts().gates().closed) == 5


def test_a_registration_that_fails_settles_nothing(
    registry: Registry, config: Config, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule.run(registry, config, [])
    clock.pass_time(1800)
    with monkeypatch.context() as broken:

        def fail(*args: object) -> None:
            raise MamError("no room")

        broken.setattr("mam_core.registration.Registration.add", fail)
        assert schedule.run(registry, config, [])[0].trouble == "no room"
    assert keys(registry) == []
    assert schedule.run(registry, config, [])[0].job_id


def test_none_is_begun_while_the_one_before_is_not_over(
    registry: Registry, config: Config, clock: FakeClock
) -> None:
    """INV-2"""
    schedule.run(registry, config, [])
    clock.pass_time(1800)
    first = schedule.run(registry, config, [])[0].job_id
    clock.pass_time(1800)
    (half, _) = schedule.run(registry, config, [])
    assert (half.job_id, half.missed[0].why) == ("", f"job {first} is not over")
    with pytest.raises(TransitionRefused, match=f"job {first} is not over"):
        schedule.run(registry, config, ["half"])
    assert schedule.run(registry, config, ["half"], overlap=True)[0].job_id


def test_a_pause_holds_back_and_counts_nothing_as_missed(
    registry: Registry, config: Config, clock: FakeClock
) -> None:
    schedule.run(registry, config, [])
    schedule.pause(registry, config, ["half"], "holidays")
    clock.pass_time(7200)
    assert schedule.run(registry, config, [])[0].job_id == ""
    half, nightly = schedule.standing(registry, config)
    assert half.pause is not None
    assert (half.pause.why, half.next, nightly.pause) == ("holidays", None, None)
    assert schedule.resume(registry, config, ["half"])
    assert not schedule.resume(registry, config, ["half"])
    clock.pass_time(1800)
    half_again = schedule.run(registry, config, [])[0]
    assert (half_again.at, half_again.missed_count) == ("2026-06-19T12:00:00Z", 0)


def test_a_pause_of_all_with_an_end_ends_by_itself(
    registry: Registry, config: Config, clock: FakeClock
) -> None:
    schedule.run(registry, config, [])
    schedule.pause(registry, config, [], until="+1h")
    clock.pass_time(1800)
    assert schedule.run(registry, config, [])[0].job_id == ""
    clock.pass_time(3600)
    fired = schedule.run(registry, config, [])[0]
    assert (fired.at, fired.missed_count) == ("2026-06-19T11:00:00Z", 0)


def test_missed_ones_are_named_before_anybody_settles_them(
    registry: Registry, config: Config, clock: FakeClock
) -> None:
    schedule.run(registry, config, [])
    clock.pass_time(5 * 1800 + 600)
    half, _ = schedule.standing(registry, config)
    assert half.missed_count == 5
    assert half.missed[-1].at == "2026-06-19T12:00:00Z"
    assert half.next == "2026-06-19T12:30:00Z"
    assert schedule.run(registry, config, [])[0].missed_count == 5
    clock.pass_time(20 * 3600)
    nightly = schedule.run(registry, config, [])[1]
    assert nightly.at == "2026-06-20T03:00:00Z", "it makes up for the newest"
