"""What the audit log says of a moment is what was shown at that moment."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mam_core.operations.replay import Cursor, Then, loading, replay
from mam_core.records import Status
from mam_core.replay.past import Past
from tests.integration.replay.story import Sight, Story
from tests.support.clock import FakeClock


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
            assert then.shown(sight.at) == sight.shown[job_id]


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
