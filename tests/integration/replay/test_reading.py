"""Logs as they are found: torn, damaged, with clocks that jumped, and of other tools."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mam_core.audit import AuditEvent
from mam_core.clock import fine_stamp
from mam_core.errors import InvalidField
from mam_core.operations.replay import Past, loading, moment, replay, span
from mam_core.records import Status
from mam_core.registry import Registry
from tests.console.detail_story import registry_in
from tests.support.clock import NOON, FakeClock
from tests.support.jobs import WORKER, add, running


@pytest.fixture
def registry(tmp_path: Path, clock: FakeClock) -> Registry:
    return registry_in(tmp_path, clock)


def statuses(registry: Registry, at: float) -> dict[str, Status]:
    """By the command's way and by the console's, which must agree."""
    found = replay(registry, at)
    past = loading(registry).finish()
    assert past.state_at(at) == {then.job_id: then for then in found.jobs}
    return {then.job_id: then.status for then in found.jobs}


def log_of(registry: Registry, job_id: str) -> Path:
    return Path(registry.store.audit.path, job_id, "events.ndjson")


def write_log(
    registry: Registry, job_id: str, lines: Iterable[tuple[float, dict[str, Any]]]
) -> None:
    text = "".join(json.dumps({"timestamp": fine_stamp(at), **line}) + "\n" for at, line in lines)
    folder = log_of(registry, job_id).parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    log_of(registry, job_id).write_text(text)


def moved(was: str, to: str, **facts: Any) -> dict[str, Any]:
    return {"event": "status_changed", "from": was, "to": to, **facts}


def test_damaged_lines_are_counted_and_the_torn_end_waits_for_its_writer(
    registry: Registry, clock: FakeClock
) -> None:
    job = running(registry)
    log = log_of(registry, job.job_id)
    whole = log.read_bytes()
    log.write_bytes(whole + b'\xff\xfe\n[1, 2]\n{"n": "x", "event": 7, "timestamp": []}\n{"n": 9, ')
    loaded = loading(registry)
    past = loaded.finish()
    assert loaded.damaged == 2
    assert past.state_at(clock.now())[job.job_id].status is Status.RUNNING
    line = {"event": "status_changed", "to": "error", "timestamp": fine_stamp(clock.now())}
    with log.open("ab") as file:
        file.write(json.dumps(line).encode()[1:] + b"\n")
    loaded.finish()
    assert (loaded.damaged, loaded.lines) == (2, 4)
    assert past.state_at(clock.now())[job.job_id].status is Status.ERROR
    assert replay(registry, clock.now()).damaged == 2
    assert not loaded.is_outdated
    log.write_bytes(whole)
    loaded.finish()
    assert loaded.is_outdated


def test_a_log_that_was_removed_is_no_longer_shown(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    gone, there = running(registry).job_id, add(registry)
    loaded = loading(registry)
    assert set(loaded.finish().state_at(clock.now())) == {gone, there}
    (tmp_path / "jobs" / f"{gone}.json").unlink()
    shutil.rmtree(log_of(registry, gone).parent)
    loaded.finish()
    assert loaded.is_outdated
    assert set(loading(registry).finish().state_at(clock.now())) == {there}


def test_a_line_that_nobody_can_have_meant_is_passed_over(
    registry: Registry, clock: FakeClock
) -> None:
    job_id = add(registry)
    log = log_of(registry, job_id)
    log.write_bytes(b'{"long": "' + b"x" * 6_000_000 + b'"}\n' + log.read_bytes())
    found = replay(registry, clock.now())
    assert (found.damaged, len(found.jobs)) == (1, 1)


def test_numbers_and_not_clocks_say_what_came_first(registry: Registry, clock: FakeClock) -> None:
    """A clock that was set back, one that was at 1970 and one that is in the next century."""
    far = NOON + 4_000_000_000
    lines = [
        (NOON - 100, {"event": "registered"}),
        (NOON - 50, moved("pending", "running", attempt=1)),
        (NOON - 80, moved("running", "error", attempt=1)),
        (10.0, moved("error", "pending", attempt=1, cause="retry")),
        (far, moved("pending", "running", attempt=2)),
        (NOON - 20, moved("running", "completed", attempt=2)),
    ]
    write_log(registry, "jumping0", lines)
    assert statuses(registry, NOON - 101) == {}
    assert statuses(registry, NOON - 60) == {"jumping0": Status.PENDING}
    # All that bears no time of its own happened when the line before it did.
    assert statuses(registry, NOON - 50) == {"jumping0": Status.RUNNING}
    assert replay(registry, NOON - 50).jobs[0].stand.attempt == 2
    assert statuses(registry, NOON - 20) == {"jumping0": Status.COMPLETED}


def test_what_was_said_counts_from_then_however_late_it_is_logged(
    registry: Registry, clock: FakeClock
) -> None:
    payload = {"seq": 1, "event": "progress", "attempt": 1, "detail": "half"}
    told = {"event": "published", "payload": payload | {"timestamp": "2026-06-19T09:28:20Z"}}
    lines = [
        (NOON - 200, {"event": "registered"}),
        (NOON - 150, moved("pending", "running", attempt=1)),
        (NOON - 50, moved("running", "completed", attempt=1)),
        (NOON - 5, told),
    ]
    write_log(registry, "lateword", lines)
    assert replay(registry, NOON - 101).jobs[0].last_seq == 0
    then = replay(registry, NOON - 99).jobs[0]
    assert (then.status, then.last_seq) == (Status.RUNNING, 1)
    assert then.shown(NOON - 99).words == "half"


def test_a_history_of_the_original_counts_its_attempts_by_claims(registry: Registry) -> None:
    lines = [
        (NOON - 9, {"event": "registered"}),
        (NOON - 8, moved("pending", "running")),
        (NOON - 7, moved("running", "pending")),
        (NOON - 6, moved("pending", "running")),
    ]
    write_log(registry, "original", lines)
    then = replay(registry, NOON).jobs[0]
    assert (then.stand.attempt, then.stand.contract.agent) == (2, "")


def test_what_a_sweep_wrote_down_is_shown_as_lost(registry: Registry, clock: FakeClock) -> None:
    job = running(registry, lease=WORKER)
    line = registry.note(AuditEvent.STALE, attempt=1, why="its host is gone")
    registry.store.audit.append(job.job_id, line.to_dict(job.job_id))
    shown = replay(registry, clock.now()).jobs[0].shown(clock.now())
    assert (shown.state, shown.words) == ("lost", "its host is gone")


def test_an_empty_place_has_no_past(registry: Registry, clock: FakeClock) -> None:
    assert replay(registry, clock.now()).jobs == []
    assert span(registry) is None
    assert loading(registry).finish().span is None
    past = Past()
    assert past.beside(clock.now()) == (None, None)


def test_the_span_and_the_moments_beside(registry: Registry, clock: FakeClock) -> None:
    add(registry)
    clock.pass_time(10)
    running_id = running(registry, agent_session="beta").job_id
    found = span(registry)
    assert found is not None
    assert (found.begin, found.end, found.jobs) == (NOON, NOON + 10, 2)
    past = loading(registry).finish()
    assert past.span == (NOON, NOON + 10)
    assert past.beside(NOON + 5) == (NOON, NOON + 10)
    assert past.between(NOON + 5, NOON + 11) == {running_id}


def test_a_loading_that_was_left_goes_on(registry: Registry, clock: FakeClock) -> None:
    for _ in range(5):
        running(registry)
        clock.pass_time(1)
    loaded = loading(registry)
    for progress in loaded.run():
        assert 0 <= progress.share <= 1
        if loaded.lines > 2:
            break
    assert loaded.past.changes == 0
    loaded.finish()
    assert loaded.lines == 10
    assert loaded.past.state_at(clock.now()) == {
        then.job_id: then for then in replay(registry, clock.now()).jobs
    }


def test_moments_as_people_say_them() -> None:
    assert moment("-10m", NOON) == NOON - 600
    assert moment("now", NOON) == NOON
    assert moment("2026-06-19T09:30:00Z", 0) == NOON
    today = moment("09:29", NOON + 60)  # on the wall of whoever asks
    assert moment("09:29:30", NOON + 60) == today + 30
    assert 0 <= NOON + 60 - today < 86400
    assert datetime.fromtimestamp(today, UTC).astimezone().strftime("%H:%M") == "09:29"
    assert moment("2026-06-19T09:29", 0) % 86400 == today % 86400
    for text in ("25:00", "soon", "14:05Z", "-", "14:05:12:01"):
        with pytest.raises(InvalidField, match=r"is no (moment|duration)"):
            moment(text, NOON)
