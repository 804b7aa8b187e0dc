"""The filter line: what it finds, and how it says that it cannot be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam_core.records import Reason, Status
from mam_core.summaries import Unreadable
from mam_tui.filters import NEEDING, BadFilter, parse, with_or_without
from mam_tui.rows import Row
from tests.console.story import NOW, summary


def found(text: str, *rows: Row) -> list[str]:
    chosen = parse(text)
    return [row.job_id for row in rows if chosen.fits(row, NOW)]


ROWS = (
    Row(summary(1, agent="codex", head="Fix the Payments test")),
    Row(summary(2, Status.ERROR, reason=Reason.TIMEOUT, group="nightly", attempt=3)),
    Row(summary(3, Status.RUNNING, agent_session="tmux:claude-a")),
    Row(Unreadable("job0004", "it is no JSON")),
)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", ["job0001", "job0002", "job0003", "job0004"]),
        ("payments", ["job0001"]),
        ("-payments", ["job0002", "job0003", "job0004"]),
        ('"payments test"', ["job0001"]),
        ("status:error", ["job0002"]),
        ("status:error,running", ["job0002", "job0003"]),
        ("status:unreadable", ["job0004"]),
        ("state:queued", ["job0001"]),
        ("agent:codex", ["job0001"]),
        ("session:claude-a", ["job0003"]),
        ("group:night reason:timeout", ["job0002"]),
        ("attempt:>1", ["job0002"]),
        ("attempt:1", ["job0003"]),
        ("age:<3m", ["job0001", "job0002", "job0003"]),
        ("age:>1h", []),
        ("/pay.*test/", ["job0001"]),
        ("-/pay.*test/ -status:unreadable", ["job0002", "job0003"]),
        ("no:such", []),
    ],
)
def test_what_is_found(text: str, ids: list[str]) -> None:
    assert found(text, *ROWS) == ids


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("status:", "status: what? for example status:error"),
        ("age:soon", "age:soon is no number; for example age:<2h"),
        ("attempt:>2h", "attempt:>2h is no number; for example attempt:>1"),
        ('"two words', '"two words does not end: a " is missing'),
        (
            "/(/",
            "'(' is no regular expression: missing ), unterminated subpattern at position 0",
        ),
        ("/(a+)+b/", "'(a+)+b' repeats a group, which can cost without end"),
        ("x" * 2000, "a filter has at most 1000 characters"),
    ],
)
def test_a_mistake_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(BadFilter) as problem:
        parse(text)
    assert problem.value.message == sentence


def test_only_a_filter_by_age_changes_with_time_alone() -> None:
    assert parse("-age:<1h").follows_time
    assert not parse("status:error x").follows_time


@given(st.text(max_size=80))
def test_any_text_is_a_filter_or_a_sentence(text: str) -> None:
    try:
        chosen = parse(text)
    except BadFilter:
        return
    for row in ROWS:
        chosen.fits(row, NOW)


def test_what_needs_a_person_is_found_by_what_for() -> None:
    rows = [Row(summary(number, Status.RUNNING)) for number in range(1, 4)]
    for row, need in zip(rows, ("", "permission", "failed validation"), strict=True):
        row.live = row.live._replace(need=need)
    assert found("needs:any", *rows) == ["job0002", "job0003"]
    assert found("-needs:any", *rows) == ["job0001"]
    assert found("needs:permission,lost", *rows) == ["job0002"]
    assert found("needs:validation job0003", *rows) == ["job0003"]


@pytest.mark.parametrize("text", ["", "status:error", '"two  words" -x', "/a b/ agent:codex"])
def test_a_term_comes_and_goes_and_leaves_the_others_as_they_were(text: str) -> None:
    narrowed = with_or_without(text, NEEDING)
    assert narrowed == f"{text} {NEEDING}".strip()
    assert with_or_without(narrowed, NEEDING) == text
    assert with_or_without(f"{NEEDING} {text}".strip(), NEEDING) == text
