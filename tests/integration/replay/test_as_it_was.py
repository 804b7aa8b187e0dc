"""What the audit log says of a moment is what was shown at that moment."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mam_core import codec
from mam_core.clock import stamp
from mam_core.operations.replay import Cursor, Loading, Then, loading, replay
from mam_core.records import Status
from mam_core.replay.past import Past
from tests.console.detail_story import registry_in
from tests.integration.replay.story import Sight, Story
from tests.support.clock import FakeClock
from tests.support.jobs import add


def check(sight: Sight, found: dict[str, Then]) -> None:
    assert {job_id: then.summary for job_id, then in found.items()} == sight.jobs
    for job_id, then in found.items():
        record, stand = sight.records[job_id], then.stand
        assert (stand.detail, stand.cancel_requested_by) == (
            record.detail,
            record.cancel_requested_by,
        )
        if record.lease is not None:
            assert stand.claimed_by == record.lease.owner
        if record.status is Status.RUNNING:
            assert then.shown(sight.at) == sight.shown[job_id]._replace(limit=None)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_at_every_step_of_a_random_story(tmp_path: Path, clock: FakeClock, seed: int) -> None:
    story = Story(tmp_path, clock, seed)
    story.play(160)
    statuses = {job.status for sight in story.sights for job in sight.jobs.values()}
    assert statuses == set(Status)
    assert any(one.state == "waiting for input" for s in story.sights for one in s.shown.values())
    past = loading(story.registry).finish()
    for sight in story.sights:
        check(sight, past.state_at(sight.at))
    for sight in story.sights[::20]:
        found = replay(story.registry, sight.at)
        check(sight, {then.job_id: then for then in found.jobs})
        assert {job_id for one in found.sessions for job_id in one.running} == {
            job_id for job_id, job in sight.jobs.items() if job.status is Status.RUNNING
        }
        assert sum(found.counts.values()) == len(sight.jobs)


def test_a_cursor_shows_the_same_wherever_it_comes_from(tmp_path: Path, clock: FakeClock) -> None:
    story = Story(tmp_path, clock, seed=2)
    story.play(120)
    loaded = loading(story.registry)
    loaded.past = Past(step=16)  # many checkpoints
    past = loaded.finish()
    dice = random.Random(7)
    sight = story.sights[0]
    cursor = Cursor(past, sight.at)
    board = {then.job_id: then for then in cursor.jobs()}
    for _ in range(150):
        before, sight = sight, dice.choice(story.sights)
        changed = cursor.move(sight.at)
        assert changed.keys() <= past.between(before.at, sight.at)
        for job_id, then in changed.items():
            if then is None:
                board.pop(job_id, None)
            else:
                board[job_id] = then
        check(sight, board)
        assert cursor.counts() == _counted(sight)


def test_the_past_grows_with_the_log_and_reads_nothing_twice(
    tmp_path: Path, clock: FakeClock
) -> None:
    story = Story(tmp_path, clock, seed=11)
    loaded = loading(story.registry)
    cursor = Cursor(loaded.past, clock.now())
    lines = 0
    for _ in range(12):
        story.play(12)
        loaded.finish()
        assert loaded.lines >= lines
        lines = loaded.lines
        for sight in story.sights[-30:]:  # also moments that late events have changed since
            check(sight, loaded.past.state_at(sight.at))
        cursor.move(story.sights[-1].at)
        check(story.sights[-1], {then.job_id: then for then in cursor.jobs()})
    audit = story.registry.store.audit
    assert lines == sum(1 for job_id in audit.job_ids() for _ in audit.lines(job_id))
    assert not loaded.is_outdated


def _counted(sight: Sight) -> dict[Status, int]:
    found: dict[Status, int] = {}
    for job in sight.jobs.values():
        found[job.status] = found.get(job.status, 0) + 1
    return found


def test_a_job_without_a_history_is_part_of_the_past_and_stays_one_job(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Another tool wrote its record; it changes it, and then something of ours does."""
    registry = registry_in(tmp_path, clock)
    job = registry.get(add(registry, "theirs"))
    path = tmp_path / "jobs" / "theirs01.json"

    def write(status: Status) -> None:
        at = stamp(clock.now())
        theirs = job.evolve(job_id="theirs01", status=status, updated_at=at)
        path.with_suffix(".new").write_bytes(codec.encode_job(theirs))
        path.with_suffix(".new").rename(path)

    def statuses(loaded: Loading) -> list[Status]:
        """Of that job, from change to change."""
        loaded.finish()
        past, found = loaded.past, list[Status]()
        begin, end = past.span or (0.0, 0.0)
        moments = [begin + n for n in range(int(end - begin) + 1)]
        for at in moments:
            if (then := past.state_at(at).get("theirs01")) is not None:
                found += [] if found[-1:] == [then.status] else [then.status]
        return found

    write(Status.PENDING)
    loaded = loading(registry)
    assert statuses(loaded) == [Status.PENDING]
    changes = loaded.past.changes
    assert statuses(loaded) == [Status.PENDING]
    assert loaded.past.changes == changes, "nothing new, nothing added"
    clock.pass_time(60)
    write(Status.RUNNING)
    assert statuses(loaded) == [Status.PENDING, Status.RUNNING]
    clock.pass_time(60)
    registry.set_status("theirs01", Status.ERROR)
    assert statuses(loaded) == [Status.PENDING, Status.RUNNING, Status.ERROR]
    assert statuses(loading(registry))[-1] == Status.ERROR
