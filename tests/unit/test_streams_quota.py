"""Usage limits as agents word them, and the moment when each is over."""

from __future__ import annotations

import time
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam_core.agents.quota import Limit, find_limit, find_reset, plausible
from tests.support.recordings import RECORDED_AT as NOW  # 2026-11-16T02:20:00Z, a Monday
from tests.support.rows import each_row

BERLIN = ZoneInfo("Europe/Berlin")


def at(day: int, hour: int, minute: int = 0, zone: tzinfo = UTC, month: int = 11) -> float:
    return datetime(2026, month, day, hour, minute, tzinfo=zone).timestamp()


#: The messages of the recordings and of the programs' documents, and when they end.
MESSAGES: list[tuple[str, float | None]] = [
    # Claude Code
    ("You've hit your session limit · resets 3:43am (UTC)", at(16, 3, 43)),
    ("You've hit your weekly limit · resets 3:43am (UTC)", at(16, 3, 43)),
    ("You've hit your limit · resets 3pm (Europe/Berlin)", at(16, 15, zone=BERLIN)),
    ("You’ve hit your Opus limit · resets Nov 20, 5pm (UTC)", at(20, 17)),
    ("5-hour limit reached ∙ resets 1am (America/New_York)", at(16, 6)),
    ("Weekly limit reached ∙ resets Thu 3:30 PM (UTC)", at(19, 15, 30)),
    ("API Error: Request rejected (429) · Claude AI usage limit reached|1794799034", 1794799034),
    (
        "API Error: Request rejected (429) · This request would exceed your account's rate limit. "
        "Please try again later.",
        None,
    ),
    ("Your credit balance is too low to access the Anthropic API.", None),
    ('429 {"type":"error","error":{"type":"rate_limit_error","message":"Rate limited"}}', None),
    # Codex
    (
        "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit "
        "https://chatgpt.com/settings/usage to purchase more credits or try again at 4:19 AM.",
        at(16, 4, 19),
    ),
    ("You've hit your usage limit. Try again at Nov 21st, 2026 4:19 AM.", at(21, 4, 19)),
    ("You've hit your usage limit. Try again in 3 days 4 hours 5 minutes.", NOW + 273_900),
    ("exceeded retry limit, last status: 429 Too Many Requests", None),
    ("Quota exceeded. Check your plan and billing details.", None),
    # Gemini CLI
    (
        "You exceeded your current quota, please check your plan and billing details.\n"
        "Suggested retry after 5s.",
        NOW + 5,
    ),
    ("You have exhausted your daily quota on this model.", None),
    (
        "You have exhausted your capacity on this model. Your quota will reset after 2h14m5s.",
        NOW + 8045,
    ),
    ("Usage limit reached. Access resets at 1:00 PM PST.", at(16, 21)),
    # OpenAI's API, as opencode and aider pass it on
    (
        "Rate limit reached for standin-1 in organization org-test on tokens per min (TPM): "
        "Limit 30000, Used 29500, Requested 1234. Please try again in 5s.",
        NOW + 5,
    ),
    ("Rate limit reached for x. Please try again in 6m0s.", NOW + 360),
    ("Rate limit exceeded. Please try again in 1m30.5s.", NOW + 90.5),
    ("Rate limit reached for x. Please try again in 20ms.", NOW + 0.02),
    ("The usage limit has been reached, resets_in_seconds: 7200", NOW + 7200),
    ('{"type": "usage_limit_reached", "resets_at": 1794803351}', 1794803351),
    ("litellm.RateLimitError: OpenAIException - slow down", None),
    # Other ways to say it
    ("usage limit reached, available again at 2026-11-16T05:00:00Z", at(16, 5)),
    ("usage limit reached until 2026-11-16 05:00:00+01:00", at(16, 4)),
    ("daily limit exceeded, resets in 2h 14m", NOW + 8040),
    ("usage limit reached, retry-after: 90", NOW + 90),
]


@each_row(("message", "until"), MESSAGES)
def test_a_limit_and_its_end(message: str, until: float | None) -> None:
    limit = find_limit(message, NOW, UTC)
    assert limit is not None
    assert limit.until == (until if until is None else pytest.approx(until))


@each_row(
    "message",
    [
        "",
        "Done.",
        "I added a rate limiter with a limit of 429 requests.",
        "The prompt is too long: limit 200000 tokens",
        "Reached maximum number of turns (1)",
        "API Error: Repeated 529 Overloaded errors. The API is at capacity. Try again in a moment.",
        "Claude's response exceeded the 64000 output token maximum.",
        "This model's maximum context length is 128000 tokens.",
        "Model openai/standin-1 has hit a token limit!",
        "disk quota is fine, resets at 3pm",
    ],
)
def test_other_messages_are_none(message: str) -> None:
    assert find_limit(message, NOW, UTC) is None


def test_a_time_without_a_zone_is_of_the_agents_clock() -> None:
    message = "You've hit your usage limit, try again at 4:19 AM."
    limit = find_limit(message, NOW, BERLIN)
    assert limit == Limit(message, at(16, 4, 19, BERLIN))


def test_without_a_zone_at_all_it_is_this_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Kolkata")  # no whole hour from UTC
        time.tzset()
        assert find_reset("try again at 8:00 AM", NOW) == at(16, 8, zone=ZoneInfo("Asia/Kolkata"))
    time.tzset()


def test_a_time_that_has_just_passed_is_not_tomorrow() -> None:
    """Else a minute's delay would block the agent for a day."""
    assert find_reset("resets 2:19am (UTC)", NOW) == at(16, 2, 19)
    assert find_reset("resets 1:30am (UTC)", NOW) == at(17, 1, 30)


def test_the_day_is_the_zones_own() -> None:
    late = at(16, 23, 30)
    assert find_reset("resets 1am (Europe/Berlin)", late) == at(17, 1, zone=BERLIN)


def test_a_summer_time_that_ends_in_between_is_counted() -> None:
    evening = at(24, 22, month=10)  # the night before clocks go back in Berlin
    assert find_reset("resets 9am (Europe/Berlin)", evening) == at(25, 8, month=10)


def test_a_date_after_new_year_is_next_years() -> None:
    eve = at(31, 12, month=12)
    expected = datetime(2027, 1, 3, 5, tzinfo=UTC).timestamp()
    assert find_reset("resets Jan 3 at 5am (UTC)", eve) == expected


@each_row(
    "words",
    [
        "resets 3pm (Middle/Earth)",
        "resets 3pm (Europe)",
        "resets 25:00",
        "resets 13pm",
        "resets Feb 31, 5pm (UTC)",
        "resets at 2026-13-45T99:00",
        "resets in 99999 days",
        "limit reached|9999999999",
        "limit reached|1000000000",
        "try again",
        "try again at 7",
    ],
)
def test_what_cannot_be_right_is_not_guessed(words: str) -> None:
    assert find_reset(words, NOW, UTC) is None


PARTS = st.sampled_from(
    [
        *("resets", "at", "again", "in", "limit reached|", "resets_at:", "until", "on", "try"),
        *(
            "Nov",
            "Feb",
            "Thu",
            "31",
            "30th,",
            "0",
            "9999",
            "0000",
            "1",
            "99999999999",
            "2026-02-30",
        ),
        *("9999-12-31T23:59:59+23:59", "0001-01-01T00:00", "3:43am", "12pm", "24:00", "٣:٠٠"),
        *("(UTC)", "(Asia/Tokyo)", "(Nowhere)", "PST", "d", "h", "m", "5d", "999999h", "ms", "."),
    ]
)


@given(st.lists(PARTS, max_size=10), st.sampled_from([0.0, NOW, 4e9]), st.sampled_from([None, UTC]))
def test_no_figures_break_it(words: list[str], now: float, local: tzinfo | None) -> None:
    for message in (" ".join(words), "".join(words)):
        moment = find_reset(message, now, local)
        assert moment is None or moment >= now - 3600
        find_limit("usage limit reached " + message, now, local)


def test_milliseconds_are_taken_for_what_they_are() -> None:
    assert plausible(1794799034000, NOW) == 1794799034


def test_a_hostile_message_costs_little() -> None:
    """Patterns over foreign text: none of these may take seconds."""
    begun = time.process_time()
    for unit in (
        "reset ",
        "reset",
        "resets 1d ",
        "limit until-",
        "again in ",
        "429 1 ",
        "hit your ",
    ):
        message = "quota limit " + unit * 10_000
        find_limit(message, NOW, UTC)
        find_reset(message, NOW, UTC)
    assert time.process_time() - begun < 5
