"""A status that nobody earned: set by hand, or written into the record by another tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mam_core.wiring import open_registry
from mam_core.work.sweep import Sweep
from tests.cli.conftest import Mam

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
