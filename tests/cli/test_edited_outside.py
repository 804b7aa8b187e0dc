"""A status that nobody earned: set by hand, or written into the record by another tool."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mam_core.errors import StoreError
from mam_core.wiring import open_registry
from mam_core.work.sweep import Sweep
from tests.cli.conftest import Mam
from tests.support.rows import each_row

WORDS = "edited outside"


def edit(mam: Mam, job_id: str, **changes: Any) -> None:
    """As another tool would: reads the record, and writes all of it."""
    path = mam.path(job_id)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    fresh.chmod(0o600)
    fresh.rename(path)


def moves(mam: Mam, job_id: str) -> list[tuple[str, str, str]]:
    lines = map(json.loads, mam.ok("logs", job_id, "--json").lines)
    return [
        (line["from"], line["to"], line["cause"])
        for line in lines
        if line["event"] == "status_changed"
    ]


@pytest.fixture
def running(mam: Mam) -> str:
    job_id = mam.register("x", "--validate", "false")
    mam.ok("pick", "--label", "tmux:a")
    return job_id


def test_an_override_is_shown_as_one(mam: Mam, running: str, tmp_path: Path) -> None:
    mam.ok("status", running, "--set", "completed")
    assert mam.record(running)["reason"] == "override"
    assert "override" in mam.ok("list").out
    assert "completed (override)" in mam.ok("why", running).out
    report = tmp_path / "report.md"
    mam.ok("report", "--job", running, "-o", report)
    assert "override" in report.read_text()


def test_a_status_that_another_tool_wrote_is_shown_as_such(
    mam: Mam, running: str, tmp_path: Path
) -> None:
    edit(mam, running, status="completed")
    assert WORDS in mam.ok("list").out
    assert f"completed ({WORDS})" in mam.ok("why", running).out
    report = tmp_path / "report.md"
    mam.ok("report", "--job", running, "-o", report)
    assert WORDS in report.read_text()


def test_history_says_so_once_somebody_notices(mam: Mam, running: str) -> None:
    edit(mam, running, status="completed")
    mam("verify", running)
    told = moves(mam, running)
    assert told[-1] == ("running", "completed", WORDS)
    mam("verify", running)
    assert moves(mam, running) == told
    assert mam.record(running)["reason"] == WORDS


@each_row("words", [["why"], ["logs"], ["logs", "--json"], ["report", "-o", "page.md", "--job"]])
def test_whoever_shows_the_job_notices(mam: Mam, words: list[str]) -> None:
    """Also of one that never ran, which no worker and no sweep looks at."""
    job_id = mam.register("x")
    edit(mam, job_id, status="completed")
    with suppress(FileNotFoundError):
        (mam.folder / "page.md").unlink()
    shown = mam.ok(*words, job_id).out
    if words[0] == "logs":
        assert WORDS in shown
    history = mam.registry.parent / "delegate_job_logs" / job_id / "events.ndjson"
    told = [json.loads(line) for line in history.read_text().splitlines()]
    assert [line.get("cause") for line in told] == [None, WORDS]


def test_one_whose_history_cannot_be_written_is_shown_all_the_same(
    mam: Mam, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = mam.register("x")
    edit(mam, job_id, status="completed")

    def refused(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr("mam_core.registry.Registry.notice", refused)
    assert f"completed ({WORDS})" in mam.ok("why", job_id).out


def test_a_sweep_notices_what_no_longer_runs(mam: Mam, running: str) -> None:
    with open_registry(str(mam.registry)) as registry:
        sweep = Sweep(registry)
        sweep.once()
        edit(mam, running, status="completed")
        sweep.once()
    assert moves(mam, running)[-1] == ("running", "completed", WORDS)


def test_a_contract_that_was_weakened_is_shown(mam: Mam, running: str) -> None:
    """With `false` as its check it could not have been completed."""
    edit(mam, running, validate=None)
    mam.ok("publish", running, "--event", "completed")
    record = mam.record(running)
    assert (record["status"], record["reason"]) == ("completed", WORDS)


def test_a_retry_begins_anew(mam: Mam, running: str) -> None:
    edit(mam, running, status="error")
    mam.ok("retry", running)
    mam.ok("pick", "--label", "tmux:a")
    assert mam.record(running)["reason"] is None
    assert [cause for _, _, cause in moves(mam, running)] == ["claim", WORDS, "retry", "claim"]


def test_what_another_tool_may_change_is_not_mentioned(mam: Mam, running: str) -> None:
    """The scripts of the documents count events in the record and date it."""
    edit(mam, running, last_seq=7, updated_at="2026-06-19T09:00:00Z", priority=3, prompt="y")
    assert WORDS not in mam.ok("list").out


def test_a_record_that_another_tool_made_is_its_own(mam: Mam) -> None:
    mam.write("theirs01", status="completed")
    assert WORDS not in mam.ok("list").out
