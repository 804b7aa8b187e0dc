"""`u` takes the last act back, where there is a way back, and says so where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mam_core.leases import LeaseTerms
from mam_core.operations.cancel import cancel
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from mam_tui.screens.confirm import Confirm
from mam_tui.trail import Trail
from tests.console.staging import Opened, add, opened


@pytest.fixture(autouse=True)
def _no_place_of_the_persons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "jobs")


def all_are(registry: Registry, ids: Sequence[str], status: Status) -> Callable[[], bool]:
    return lambda: all(registry.get(job_id).status is status for job_id in ids)


async def cancelled(console: Opened, registry: Registry, *ids: str) -> None:
    await console.press("c")
    await console.until_on(Confirm)
    await console.press("y")
    await console.until(all_are(registry, ids, Status.CANCELLED), "they are cancelled")
    await console.until(
        lambda: all(console.desk.board.rows[one].word == "cancelled" for one in ids), "it is seen"
    )
    await console.until(lambda: console.desk.trail.last is not None, "the way back is known")


async def test_one_cancel_is_taken_back_without_a_question(path: str) -> None:
    with open_registry(path) as registry:
        job_id = add(registry)
        async with opened(path, (80, 20)) as console:
            await console.press("u")
            await console.until_told("undo: nothing was done here yet")
            await cancelled(console, registry, job_id)
            await console.press("u")
            await console.until(lambda: registry.get(job_id).status is Status.PENDING, "it is back")
            await console.until_told(f"$ mam retry {job_id}")
            assert console.desk.trail.last is None  # an undo is no act that could be undone


async def test_a_job_that_waited_for_a_moment_is_not_started_unasked(path: str) -> None:
    with open_registry(path) as registry:
        job_id = add(registry, not_before="+1h")
        async with opened(path, (80, 20)) as console:
            await cancelled(console, registry, job_id)
            await console.press("u")
            await console.until_on(Confirm)
            await console.until_seen(f"{job_id} waits for no moment any more")


async def test_many_are_named_and_only_those_that_this_console_cancelled_come_back(
    path: str,
) -> None:
    with open_registry(path) as registry:
        before, *ids = (add(registry, f"Job {n}") for n in range(3))
        cancel(registry, [before])
        async with opened(path, (80, 20)) as console:
            await console.press("ctrl+a")
            await cancelled(console, registry, *ids)
            await console.press("u")
            question = await console.until_on(Confirm)
            await console.until_seen("Undo the cancel of 2 jobs?", "Job 1", "Job 2")
            await console.press("u")  # the key that asked is none that confirms
            assert console.app.screen is question
            await console.press("n")
            assert registry.get(ids[0]).status is Status.CANCELLED
            await console.press("u", "y")
            await console.until(all_are(registry, ids, Status.PENDING), "they are back")
            assert registry.get(before).status is Status.CANCELLED


async def test_one_that_is_still_cancelling_can_be_tried_again(path: str) -> None:
    with open_registry(path) as registry:
        job_id = add(registry)
        registry.claim("tmux:c", lease=LeaseTerms("worker-1", 30.0))
        async with opened(path, (80, 20)) as console:
            await console.press("c", "y")
            await console.until(lambda: registry.get(job_id).is_cancelling, "it is asked to end")
            await console.until(lambda: console.desk.trail.last is not None, "the way back")
            await console.press("u")
            await console.until_told(f"job {job_id} is still cancelling")
            registry.finish(job_id, Status.CANCELLED, attempt=1)
            await console.until(lambda: console.desk.trail.last is not None, "it is kept")
            await console.press("u")
            await console.until(lambda: registry.get(job_id).status is Status.PENDING, "it is back")


async def test_what_is_cleaned_away_comes_back(path: str) -> None:
    with open_registry(path) as registry:
        parent, gone, live = (add(registry, f"Job {n}") for n in range(3))
        add(registry, "Child", after=[parent])
        registry.claim("tmux:c")
        registry.finish(parent, Status.ERROR, attempt=1)
        cancel(registry, [gone])
        async with opened(path, (80, 20)) as console:
            await console.press("space")  # one that has not ended
            console.app.act("clean")
            await console.until_told("no job that is marked has ended")
            await console.press("ctrl+backslash")
            await console.command("clean")
            await console.until_on(Confirm)
            await console.until_seen(f"Clean job {gone} away?", f"job {parent} is kept")
            await console.press("y")
            await console.until(lambda: gone not in console.desk.board.rows, "it is gone")
            await console.until_told(f"$ mam clean {gone}")
            await console.press("u")
            await console.until(lambda: gone in console.desk.board.rows, "it is back")
            await console.until_told(f"job {gone} brought back\n$ mam clean --undo ")
            assert registry.get(live).status is Status.PENDING


async def test_what_has_no_way_back_says_so_and_the_next_undo_goes_before_it(path: str) -> None:
    with open_registry(path) as registry:
        job_id = add(registry)
        async with opened(path, (80, 20)) as console:
            await cancelled(console, registry, job_id)
            await console.press("r", "y")
            await console.until(lambda: registry.get(job_id).status is Status.PENDING, "again")
            await console.until_told(f"$ mam retry {job_id}")
            await console.press("u")
            words = "retry cannot be undone: a worker may have it by now; c cancels it; u again is"
            await console.until_told(f"{words} about the act before it: cancel of job {job_id}")
            await console.press("u")  # that cancel is over: the job went its own way
            await console.until_told(f"job {job_id} is left alone: it is pending")


def test_the_trail_is_bounded() -> None:
    trail = Trail()
    for _ in range(500):
        trail.did(["stop", "one"])
    trail.did(["export", "x"])  # nothing to undo, nothing to say
    steps = 0
    while (last := trail.last) is not None:
        trail.remove(last)
        steps += 1
    assert steps == 50
