"""A job's life as chapters: attempts told apart, and nothing old shown as current."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam_core.audit import AuditEvent
from mam_core.errors import JobNotFound
from mam_core.operations.timeline import Chapter, timeline
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from tests.console.detail_story import (
    HOSTILE,
    first_attempt,
    hostile,
    note,
    registry_in,
    two_attempts,
)
from tests.support.clock import FakeClock
from tests.support.jobs import WORKER, add, running


@pytest.fixture
def registry(tmp_path: Path, clock: FakeClock) -> Registry:
    return registry_in(tmp_path, clock)


def attempts(registry: Registry, job_id: str) -> dict[int, Chapter]:
    told = timeline(registry, job_id)
    return {chapter.attempt: chapter for chapter in told.chapters if chapter.attempt}


def words(chapter: Chapter) -> list[str]:
    return [moment.word for moment in chapter.moments]


def test_each_attempt_has_its_own_end_and_the_running_one_has_none(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    job_id = two_attempts(registry, clock, tmp_path)
    told = timeline(registry, job_id)
    assert [(c.attempt, c.after, c.outcome) for c in told.chapters] == [
        (0, 0, ""),
        (1, 0, "error"),
        (0, 1, ""),
        (2, 1, "running"),
    ]
    assert (told.current, told.status) == (2, Status.RUNNING)
    first, second = (chapter for chapter in told.chapters if chapter.attempt)
    assert (first.reason, first.detail) == ("exit", "the agent left with 3")
    assert first.elapsed_sec == 185
    assert first.facts["exit_code"] == 3
    assert (second.reason, second.detail, second.elapsed_sec) == ("", "", None)
    assert words(first) == ["claimed", "started", "working", "agent ended", "error"]
    assert words(second) == ["claimed", "started", "working", "answer", "waiting", "accepted"]
    assert second.events == {"state": 2, "progress": 1}


def test_a_job_that_is_given_back_waits_and_its_attempt_keeps_the_reason(
    registry: Registry, clock: FakeClock
) -> None:
    job = running(registry, lease=WORKER, max_attempts=3)
    registry.requeue(job.job_id, Reason.LOST, attempt=1, detail="its host is gone")
    told = timeline(registry, job.job_id)
    assert told.status is Status.PENDING
    last = told.chapters[-1]
    assert (last.attempt, last.outcome, last.reason) == (1, "given back", "lost")


def test_what_is_written_late_stays_with_its_attempt(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    job_id = two_attempts(registry, clock, tmp_path)
    note(registry, job_id, AuditEvent.VERIFIED, attempt=1, passed=False, checks=[])
    first = attempts(registry, job_id)[1]
    assert words(first)[-1] == "verified"
    assert first.moments[-1].passed is False


def test_a_job_that_was_never_claimed_has_no_attempt(registry: Registry) -> None:
    told = timeline(registry, add(registry))
    assert [chapter.attempt for chapter in told.chapters] == [0]
    assert words(told.chapters[0]) == ["registered"]


def test_a_history_outlives_its_record(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    job_id = add(registry, agent_session="tmux:alpha")
    first_attempt(registry, clock, job_id, tmp_path)
    registry.archive([job_id])
    told = timeline(registry, job_id)
    assert told.status is None
    assert "error" in [chapter.outcome for chapter in told.chapters]


def test_a_log_that_missed_the_claim_still_tells_of_the_attempt(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    job = running(registry, lease=WORKER)
    Path(registry.store.audit.path, job.job_id, "events.ndjson").write_bytes(b"")
    assert [c.outcome for c in timeline(registry, job.job_id).chapters] == ["running"]


def test_many_moments_are_kept_at_both_ends(registry: Registry) -> None:
    job = running(registry, lease=WORKER)
    for number in range(500):
        note(registry, job.job_id, AuditEvent.STALE, attempt=1, why=str(number))
    chapter = attempts(registry, job.job_id)[1]
    assert len(chapter.moments) == 400
    assert chapter.left_out == 101
    assert chapter.moments[-1].text == "499"


def test_nonsense_in_the_log_is_no_reason_to_fail(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    job_id = hostile(registry, clock, tmp_path)
    log = Path(registry.store.audit.path, job_id, "events.ndjson")
    with log.open("ab") as file:
        file.write(b'{"event": "status_changed", "attempt": "x", "to": 7, "timestamp": []}\n')
        file.write(
            b'{"event": [], "attempt": 1}\n{"event": "published", "payload": {"event": []}}\n'
        )
        file.write(b'{"event": "published", "payload": 3}\n{"event": null}\n[1]\nno json\n')
    told = timeline(registry, job_id)
    texts = [moment.text for chapter in told.chapters for moment in chapter.moments]
    assert any(text.startswith(HOSTILE) for text in texts)


def test_an_unknown_job_is_said_to_be_unknown(registry: Registry) -> None:
    with pytest.raises(JobNotFound):
        timeline(registry, "nobody")
