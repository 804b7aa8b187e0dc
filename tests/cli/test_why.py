"""``mam why`` and ``mam list`` of jobs at work: the shown state, its evidence and its past."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Mam
from tests.support.clock import FakeClock


def test_why_says_by_whose_word_it_waits(mam: Mam, asking: str, frozen: FakeClock) -> None:
    frozen.pass_time(5)
    running, shown, limit, memory = mam.ok("why", asking).lines
    assert limit == "the idle clock is paused while it waits; ends in 59m (timeout)"
    assert memory == "its memory: no cap"
    assert running.startswith("it is running as attempt 1")
    assert shown == (
        "it is shown as waiting for input: rm -r \\x1b[2J\\u202e x? "
        "(hook: PermissionRequest, 5s ago)"
    )
    data = mam.ok("why", asking, "--json").json
    assert data["shown"]["state"] == "waiting for input"
    assert data["shown"]["age_sec"] == 5
    assert data["shown"]["doubtful"] is False
    assert data["shown"]["limit"]["limit"] == "waiting"
    assert "history" not in data


def test_why_says_that_a_state_is_a_guess_and_what_ends_the_job(
    mam: Mam, frozen: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mam_core.operations.relay.leave_behind", lambda *args, **more: True)
    job_id = mam.register("count the stars", "--idle-timeout", "600")
    mam.ok("pick", "--agent-session", "tmux:a")
    mam.ok("publish", "--job", job_id, "--event", "progress", "--detail", "counting")
    frozen.pass_time(200)
    _, shown, guess, limit, _ = mam.ok("why", job_id).lines
    assert shown == "it is shown as working: counting (event: progress, 3m ago)"
    assert guess == "that is a guess: last event 3m ago"
    assert limit == "ends in 6m (idle timeout)"


def test_why_tells_the_past(mam: Mam, asking: str) -> None:
    mam.ok("cancel", asking, "--why", "enough")
    answer = mam.ok("why", asking, "--history")
    assert "\x1b" not in answer.out
    table = [line.split()[1:5] for line in answer.lines[4:]]
    assert table == [
        ["TRY", "STATE", "WITNESS", "RULE"],
        ["pending", "registry", "registered", "by"],
        ["1", "running", "registry", "claim"],
        ["1", "cancelling", "registry", "cancel_requested"],
        ["1", "waiting", "hook", "PermissionRequest"],
    ]
    history = mam.ok("why", asking, "--history", "--json").json["history"]
    assert [change["state"] for change in history][:2] == ["pending", "running"]


def test_why_of_a_pending_and_an_ended_job_has_a_shown_state(mam: Mam) -> None:
    job_id = mam.register()
    assert mam.ok("why", job_id, "--json").json["shown"]["state"] == "queued"
    mam.ok("cancel", job_id)
    assert mam.ok("why", job_id, "--json").json["shown"]["state"] == "ended"


def test_the_list_says_who_waits(mam: Mam, asking: str) -> None:
    row = next(line for line in mam.ok("list").lines if line.startswith(asking))
    assert "running · waiting" in row


def test_the_list_says_who_is_stale_and_who_is_lost(
    mam: Mam, asking: str, frozen: FakeClock
) -> None:
    frozen.pass_time(25)
    assert "running · stale" in mam.ok("list").out
    frozen.pass_time(25)
    assert "running · lost" in mam.ok("list").out


def test_the_list_as_json_has_one_key_more_for_those_that_run(mam: Mam, asking: str) -> None:
    waiting = mam.register("another")
    rows = {row["job_id"]: row for row in mam.ok("list", "--json").json}
    shown = rows[asking].pop("shown")
    assert (shown["state"], shown["channel"], shown["rule"]) == (
        "waiting for input",
        "hook",
        "PermissionRequest",
    )
    assert rows[asking] == mam.record(asking)
    assert rows[waiting] == mam.record(waiting)


def test_a_record_of_another_tool_is_shown_too(mam: Mam) -> None:
    mam.write("foreign1", status="running")
    (row,) = mam.ok("list", "--json").json
    assert row["shown"]["state"] == "starting"
    (row,) = mam.ok("list", "--json", "--status", "running").json
    assert row["shown"]["rule"] == "claimed"
