"""``mam attention``: what needs a person, for people and for programs."""

from __future__ import annotations

from tests.cli.conftest import Mam
from tests.support.clock import FakeClock


def test_nobody_is_needed(mam: Mam) -> None:
    assert mam.ok("attention").err == "mam: nothing needs a person\n"
    assert mam.ok("attention", "--json").json == []


def test_the_list_is_for_people_and_for_programs(mam: Mam, frozen: FakeClock, asking: str) -> None:
    job_id = asking
    frozen.pass_time(5)
    heading, row = mam.ok("attention").lines
    assert heading.split() == ["NEEDS", "AGE", "ID", "SESSION", "TRY", "WORDS"]
    facts, _, words = row.partition("rm -r ")
    assert facts.split() == ["permission", "5s", job_id, "tmux:a", "1"]
    assert words == "\\x1b[2J\\u202e x?"
    (need,) = mam.ok("attention", "--json").json
    assert (need["kind"], need["urgency"], need["age_sec"]) == ("permission", "high", 5)
    assert need["can_be_answered"] is True


def test_jobs_that_never_run_and_labels_that_nobody_serves_are_one_item_each(
    mam: Mam, frozen: FakeClock
) -> None:
    first = mam.register("Test the API")
    followers = [mam.register(f"after {at}", "--after", first) for at in range(3)]
    waiting = [mam.register(f"waits {at}", "--agent-session", "w") for at in range(4)]
    mam.ok("status", first, "--set", "cancelled")
    (only,) = mam.ok("attention", "--json").json
    assert (only["kind"], only["job_id"], only["jobs"]) == ("cannot run", followers[0], 3)
    frozen.pass_time(60)
    stuck, unserved = mam.ok("attention", "--json").json
    assert stuck["help"][0]["command"] == f"mam retry {first}"
    assert (unserved["kind"], unserved["job_id"], unserved["jobs"]) == (
        "nobody serves",
        waiting[0],
        4,
    )
    assert unserved["help"][0]["command"] == "mam work --agent-session w --agents shell"
    _, *rows = mam.ok("attention").lines
    assert f"3 jobs cannot run: {first}" in rows[0]
    assert "nobody serves label w with agent shell" in rows[1]
    assert rows[2:] == [
        f"{followers[0]}: cannot run unless {first} is retried: run mam retry {first}",
        f"{waiting[0]}: to start a worker: run mam work --agent-session w --agents shell",
    ]
    mam.ok("retry", first)
    mam.ok("cancel", *waiting)
    assert mam.ok("attention", "--json").json == []
