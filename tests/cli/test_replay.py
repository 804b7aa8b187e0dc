"""``mam replay``: what was there at a moment, as a table and for programs."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Mam, is_one_sentence
from tests.support.clock import FakeClock
from tests.support.rows import each_row

JR_KEYS = (
    *("job_id", "status", "created_at", "updated_at", "prompt", "agent", "agent_session"),
    *("broker", "topic_prefix", "timeout_sec", "idle_timeout_sec", "expected_artifacts"),
    *("last_seq", "auth_token", "schema_version"),
)


@pytest.fixture
def asking(mam: Mam, frozen: FakeClock, monkeypatch: pytest.MonkeyPatch) -> str:
    """A job that asked something hostile a minute after it was registered, and is gone now."""
    monkeypatch.setattr("mam_core.operations.relay.leave_behind", lambda *args, **more: True)
    job_id = mam.register("count the stars", "--group", "night")
    frozen.pass_time(60)
    mam.ok("pick", "--label", "tmux:a")
    mam.ok("heartbeat", job_id, "--owner", "w1")
    mam.ok(
        *("publish", "--job", job_id, "--event", "permission_required"),
        *("--detail", "rm -r \x1b[2J\u202e x?"),
    )
    frozen.pass_time(60)
    mam.ok("status", job_id, "--set", "error")
    mam.ok("clean")
    frozen.pass_time(60)
    return job_id


def test_as_json(mam: Mam, asking: str) -> None:
    data = mam.ok("replay", "--at", "-90s", "--json").json
    assert data["at"] == "2026-06-19T09:31:30.000Z"
    assert data["counts"]["running"] == 1
    (job,) = data["jobs"]
    expected = {
        "job_id": asking,
        "status": "running",
        "attempt": 1,
        "agent": "shell",
        "agent_session": "tmux:a",
        "group": "night",
        "claimed_by": "w1",
        "started_at": "2026-06-19T09:31:00Z",
        "ended_at": None,
        "last_seq": 1,
        "question": "rm -r \x1b[2J\u202e x?",
    }
    assert {name: job[name] for name in expected} == expected
    assert job["last_event"]["event"] == "permission_required"
    (session,) = data["sessions"]
    assert (session["label"], session["running"], session["queued"]) == ("tmux:a", [asking], 0)
    assert mam.ok("replay", "--at", "now", "--json").json["jobs"] == []
    before = mam.ok("replay", "--at=2026-06-19T09:30:30Z", "--json").json
    assert before["counts"] == {
        "pending": 1,
        "running": 0,
        "completed": 0,
        "error": 0,
        "cancelled": 0,
    }


def test_as_a_table(mam: Mam, asking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    answer = mam.ok("replay", "--at", "-90s")
    assert answer.err == "mam: as it was at 2026-06-19T09:31:30.000Z: 1 running\n"
    assert "\x1b" not in answer.out
    heading, row = answer.lines
    assert heading.split()[:4] == ["JOB", "ID", "STATUS", "AGENT"]
    assert row.startswith(f"{asking}  running · waiting  shell")
    assert "permission_required #1, 30s ago" in row


def test_the_span(mam: Mam, asking: str) -> None:
    data = mam.ok("replay", "--span", "--json").json
    expected = {"from": "2026-06-19T09:30:00.000Z", "to": "2026-06-19T09:32:00.000Z", "jobs": 1}
    assert data == expected
    assert mam.ok("replay", "--span").out.endswith(", 1 jobs\n")


def test_nothing_was_ever_logged(mam: Mam) -> None:
    assert mam.ok("replay", "--span", "--json").json == {"from": None, "to": None, "jobs": 0}
    assert json.loads(mam.ok("replay", "--at", "-1h", "--json").out)["jobs"] == []


@each_row(
    "words",
    [
        [],
        ["--at", "-10m", "--span"],
        ["--at"],
        ["--at", "yesterday"],
        ["--at", "-tenm"],
        ["--at", "-0s"],
    ],
)
def test_what_is_no_moment(mam: Mam, words: list[str]) -> None:
    answer = mam("replay", *words)
    assert (answer.code, answer.out) == (2, "")
    assert is_one_sentence(answer.err)


def test_a_job_of_another_tool_that_nobody_has_touched_is_there(
    mam: Mam, frozen: FakeClock
) -> None:
    """It has a record and no history: its own moments stand in for the lines."""
    mam.register("ours")
    record = {
        **mam.record(mam.register("theirs")),
        "job_id": "theirs01",
        "prompt": "written by a script",
        "created_at": "2026-06-19T09:00:00Z",
        "updated_at": "2026-06-19T09:20:00Z",
        "status": "completed",
    }
    for key in [key for key in record if key not in JR_KEYS]:
        del record[key]
    (mam.registry / "theirs01.json").write_text(json.dumps(record))

    def then(at: str) -> dict[str, str]:
        jobs = mam.ok("replay", "--at", at, "--json").json["jobs"]
        return {job["job_id"]: job["status"] for job in jobs}

    assert then("2026-06-19T08:59:59Z") == {}
    assert then("2026-06-19T09:10:00Z") == {"theirs01": "pending"}
    assert then("2026-06-19T09:20:00Z") == {"theirs01": "completed"}
    assert then("now")["theirs01"] == "completed"
    assert len(then("now")) == 3
    answer = mam.ok("replay", "--span").out
    assert answer.startswith("2026-06-19T09:00:00.000Z to ")
    assert "3 jobs" in answer
    record |= {"status": "running", "job_id": "theirs02"}
    (mam.registry / "theirs02.json").write_text(json.dumps(record))
    mam.ok("status", "theirs02", "--set", "error")
    assert then("now")["theirs02"] == "error", "its history begins with us"
