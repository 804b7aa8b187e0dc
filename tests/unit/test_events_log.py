"""`JOB_ID.events.log`: events as JSON lines, for debugging, only where a setting asks for it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mam_core.config import load
from mam_core.operations.clean import Selection, clean, undo
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores import events_log
from mam_core.wiring import open_registry
from tests.support.jobs import add


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    settings = tmp_path / "mam.toml"
    settings.write_text("[store]\nevents_log = true\n")
    with open_registry(str(tmp_path / "jobs"), config=load(str(settings))) as opened:
        yield opened


def log_of(tmp_path: Path, job_id: str) -> Path:
    return tmp_path / "jobs" / f"{job_id}.events.log"


def lines_of(tmp_path: Path, job_id: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log_of(tmp_path, job_id).read_text().splitlines()]


def test_it_is_off_until_it_is_asked_for(tmp_path: Path) -> None:
    with open_registry(str(tmp_path / "jobs"), config=load()) as registry:
        registry.publish(add(registry), "progress")
    assert not list(tmp_path.rglob("*.events.log"))


def test_every_event_is_a_line_as_it_is_sent(tmp_path: Path, registry: Registry) -> None:
    job_id = add(registry)
    registry.publish(job_id, "started")
    registry.publish(job_id, "progress", detail="별\n…", data={"done": 3})
    said = lines_of(tmp_path, job_id)
    posts = registry.store.outbox.posts(10)
    assert said == [json.loads(post.payload) for post in posts]
    assert [line["seq"] for line in said] == [1, 2]
    assert log_of(tmp_path, job_id).stat().st_mode & 0o777 == 0o600


def test_it_may_be_deleted_at_any_time(tmp_path: Path, registry: Registry) -> None:
    job_id = add(registry)
    registry.publish(job_id, "started")
    log_of(tmp_path, job_id).unlink()
    assert registry.get(job_id).last_seq == 1
    registry.publish(job_id, "progress")
    assert [line["seq"] for line in lines_of(tmp_path, job_id)] == [2]


def test_it_is_cut_when_it_is_full_and_keeps_the_newest(
    tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_log, "MAX_BYTES", 2_000)
    job_id = add(registry)
    for _ in range(60):
        registry.publish(job_id, "progress", detail="x" * 50)
    assert log_of(tmp_path, job_id).stat().st_size < 2_500
    seqs = [line["seq"] for line in lines_of(tmp_path, job_id)]
    assert seqs == list(range(seqs[0], 61))
    assert len(seqs) > 3


def test_it_goes_with_its_job_and_comes_back_with_it(tmp_path: Path, registry: Registry) -> None:
    gone, kept, silent = add(registry), add(registry), add(registry)
    for job_id in (gone, kept):
        registry.publish(job_id, "progress")
    for job_id in (gone, silent):
        registry.set_status(job_id, Status.COMPLETED)
    clean(registry, Selection())
    assert not log_of(tmp_path, gone).exists()
    assert log_of(tmp_path, kept).exists()
    assert sorted(undo(registry)) == sorted([gone, silent])
    assert [line["seq"] for line in lines_of(tmp_path, gone)] == [1]


def test_what_stands_in_its_place_stops_no_event(
    tmp_path: Path, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    job_id = add(registry)
    log_of(tmp_path, job_id).mkdir()
    with caplog.at_level(logging.WARNING, "mam"):
        assert registry.publish(job_id, "progress").seq == 1
    assert f"the events log of job {job_id} cannot be opened" in caplog.text
