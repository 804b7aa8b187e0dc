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
