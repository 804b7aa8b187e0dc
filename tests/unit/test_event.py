"""An event as it travels: what is sent is what is read, and nothing foreign gets through."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam_core import codec
from mam_core.errors import InvalidField
from mam_core.events.event import (
    LAST_WORDS,
    MAX_EVENT_BYTES,
    BadEvent,
    Drop,
    Event,
    EventName,
    parse,
)
from tests.support.rows import each_row

TOKEN = "a-token-of-43-characters-as-secrets-makes-it"

#: What a publisher may say; a lone surrogate is a text that Python can hold and UTF-8 cannot.
TEXTS = st.text(st.characters(exclude_categories=()), max_size=60)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
EVENTS = st.builds(
    Event,
    job_id=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True),
    attempt=st.integers(0, 2**53 - 1),
    seq=st.integers(0, 2**53 - 1),
    event=st.sampled_from([*EventName, "a_word_of_another_tool"]),
    timestamp=st.just("2026-06-19T09:30:00Z"),
    detail=TEXTS,
    data=VALUES,
)


def a_payload(**changes: Any) -> dict[str, Any]:
    content = {
        "schema_version": 1,
        "seq": 7,
        "job_id": "abc12345",
        "attempt": 2,
        "event": "progress",
        "timestamp": "2026-06-19T09:30:00Z",
        "detail": "half way",
        "data": {"percent": 50},
    }
    return {**content, **changes}


def dropped(payload: bytes) -> Drop:
    with pytest.raises(BadEvent) as caught:
        parse(payload)
    return caught.value.drop


def dropped_with(**changes: Any) -> Drop:
    return dropped(json.dumps(a_payload(**changes)).encode())


# -- what is sent ------------------------------------------------------------------------------


def test_an_event_has_the_keys_of_the_documents_and_its_attempt() -> None:
    """G2"""
    event = Event("abc12345", 2, 7, EventName.PROGRESS, "2026-06-19T09:30:00Z", "half way")
    content = json.loads(event.encode(None))
    assert list(content) == [
        "schema_version",
        "seq",
        "job_id",
        "attempt",
        "event",
        "timestamp",
        "detail",
        "data",
    ]
    assert content["schema_version"] == 1
    assert content["data"] == {}


def test_an_event_of_a_job_with_a_token_is_signed_and_does_not_show_the_token() -> None:
    """K3, K5"""
    payload = Event("abc12345", 1, 1, EventName.STARTED, "").encode(TOKEN)
    assert len(json.loads(payload)["sig"]) == 64
    assert TOKEN.encode() not in payload
    assert parse(payload).is_signed()
    assert parse(payload).is_from(TOKEN)


def test_a_payload_is_ascii_whatever_the_detail_says() -> None:
    payload = Event("abc12345", 1, 1, "progress", "", "별 \ud800 \x00").encode(None)
    assert payload.isascii()
    assert parse(payload).event.detail == "별 \ud800 \x00"


@pytest.mark.parametrize("token", [None, TOKEN])
def test_an_event_longer_than_a_megabyte_is_not_sent(token: str | None) -> None:
    long = Event("abc12345", 1, 1, "progress", "", "x" * MAX_EVENT_BYTES)
    with pytest.raises(InvalidField, match="1 MB"):
        long.encode(token)


def test_the_last_words_are_those_that_end_an_attempt() -> None:
    """G13"""
    ends = {name for name in EventName if Event("a", 1, 1, name, "").is_last_word}
    assert ends == LAST_WORDS == {"completed", "error", "cancelled"}


@given(EVENTS, st.sampled_from([None, TOKEN]))
def test_what_is_sent_is_what_is_read(event: Event, token: str | None) -> None:
    """G1, K3"""
    message = parse(event.encode(token))
    sent = event._replace(data={} if event.data is None else event.data)
    assert message.event == sent
    assert message.is_from(token)


@given(EVENTS, st.sampled_from(["seq", "attempt", "detail", "data", "event", "timestamp"]))
def test_a_signed_event_that_was_touched_is_not_believed(event: Event, key: str) -> None:
    """K3"""
    others = {
        "seq": event.seq ^ 1,
        "attempt": event.attempt ^ 1,
        "detail": event.detail + "!",
        "data": [event.data],
        "event": "forged",
        "timestamp": "2027-01-01T00:00:00Z",
    }
    content = {**json.loads(event.encode(TOKEN)), key: others[key]}
    assert not parse(json.dumps(content).encode()).is_from(TOKEN)


@given(EVENTS, st.text(max_size=80) | st.integers() | st.none())
def test_no_made_up_signature_fits(event: Event, signature: Any) -> None:
    """K3, K4"""
    content = {**json.loads(event.encode(None)), "sig": signature}
    assert not parse(json.dumps(content).encode()).is_from(TOKEN)


def test_a_key_that_we_do_not_know_is_covered_by_the_signature() -> None:
    content = json.loads(Event("abc12345", 1, 1, "progress", "").encode(TOKEN))
    assert not parse(json.dumps({**content, "extra": 1}).encode()).is_from(TOKEN)


def test_an_event_signed_for_one_job_is_not_believed_with_the_token_of_another() -> None:
    message = parse(Event("abc12345", 1, 1, "progress", "").encode(TOKEN))
    assert not message.is_from(TOKEN[::-1])


def test_an_empty_token_lets_nobody_in() -> None:
    """A record edited by hand: nothing is signed with nothing."""
    message = parse(Event("abc12345", 1, 1, "progress", "").encode(None))
    assert message.is_from(None)
    assert not message.is_from("")


# -- what comes in -----------------------------------------------------------------------------


def test_an_event_of_the_original_has_no_attempt_and_counts_as_the_first() -> None:
    """G2"""
    content = a_payload()
    del content["attempt"]
    assert parse(json.dumps(content).encode()).event.attempt == 1


def test_a_word_of_another_tool_is_an_event_like_any_other() -> None:
    assert parse(json.dumps(a_payload(event="checkpoint")).encode()).event.event == "checkpoint"


@each_row(
    "payload",
    [
        b"",
        b"null",
        b"[]",
        b"7",
        b'"text"',
        b"{",
        b"not json",
        b"\xff\xfe\x00",
        b'{"schema_version": 1',
        b"\xef\xbb\xbf{}",
        json.dumps(a_payload()).encode("utf-16"),
        json.dumps(a_payload(data=float("nan"))).encode(),
        json.dumps(a_payload(data=float("-inf"))).encode(),
        b'{"schema_version": 1, "seq": 1, "seq": 2, "job_id": "a", "event": "started"}',
        json.dumps(a_payload(data={"n": 1})).replace("1}", "1e999}").encode(),
        json.dumps(a_payload()).encode() + b"{}",
    ],
)
def test_what_is_not_one_strict_json_object_is_dropped(payload: bytes) -> None:
    """G15"""
    assert dropped(payload) is Drop.NOT_JSON


def test_what_every_reader_would_drop_is_not_sent() -> None:
    deep: dict[str, Any] = {}
    for _ in range(codec.MAX_DEPTH - 2):
        deep = {"a": deep}
    event = Event("abc12345", 1, 7, EventName.PROGRESS, "2026-06-19T09:30:00Z", "", deep)
    assert parse(event.encode(None)).event == event
    with pytest.raises(InvalidField, match="nested too deeply: an event has at most 500 levels"):
        event._replace(data={"a": deep}).encode(None)


@pytest.mark.parametrize("kind", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [600, 50_000, 100_000])
def test_a_tower_of_brackets_does_not_fall_on_us(kind: str, depth: int) -> None:
    """G15"""
    tower = kind * depth + "1" + ("]" if kind == "[" else "}") * depth
    payload = json.dumps(a_payload(data="TOWER")).replace('"TOWER"', tower).encode()
    assert dropped(payload) is Drop.NOT_JSON


def test_a_deep_but_readable_payload_is_judged_without_a_crash() -> None:
    """The signature is made from the parsed event, by another walk through it."""
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    message = parse(json.dumps({**a_payload(data=deep), "sig": "0" * 64}).encode())
    assert not message.is_from(TOKEN)


def test_a_payload_of_more_than_a_megabyte_is_dropped_unread() -> None:
    """G15"""
    exactly = json.dumps(a_payload(detail="")).encode()
    full = json.dumps(a_payload(detail="x" * (MAX_EVENT_BYTES - len(exactly)))).encode()
    assert len(full) == MAX_EVENT_BYTES
    assert parse(full).event.seq == 7
    assert dropped(full + b" ") is Drop.OVERSIZED
    assert dropped(b"\xff" * (MAX_EVENT_BYTES + 1)) is Drop.OVERSIZED


@each_row("version", [2, 0, -1, "1", 1.0, True, None, [1], {}])
def test_another_schema_is_dropped(version: Any) -> None:
    """G15"""
    assert dropped_with(schema_version=version) is Drop.OTHER_SCHEMA


def test_no_schema_at_all_is_another_schema() -> None:
    content = a_payload()
    del content["schema_version"]
    assert dropped(json.dumps(content).encode()) is Drop.OTHER_SCHEMA


@pytest.mark.parametrize("key", ["job_id", "seq", "event"])
def test_an_event_without_its_essentials_is_malformed(key: str) -> None:
    content = a_payload()
    del content[key]
    assert dropped(json.dumps(content).encode()) is Drop.MALFORMED


@each_row(
    ("key", "value"),
    [
        ("job_id", "../../etc/passwd"),
        ("job_id", "a/b"),
        ("job_id", "a+"),
        ("job_id", "#"),
        ("job_id", ""),
        ("job_id", "x" * 65),
        ("job_id", 7),
        ("job_id", None),
        ("job_id", ["abc12345"]),
        ("job_id", "abc12345\n"),
        ("job_id", "\ud800"),
        ("seq", True),
        ("seq", -1),
        ("seq", 1.0),
        ("seq", "1"),
        ("seq", 2**53 + 1),
        ("seq", None),
        ("attempt", True),
        ("attempt", -1),
        ("attempt", None),
        ("attempt", 10**400),
        ("event", "Started"),
        ("event", "started\n"),
        ("event", ""),
        ("event", "x" * 65),
        ("event", None),
        ("event", ["started"]),
        ("event", "started\x1b[2J"),
        ("detail", {"a": 1}),
        ("detail", 7),
        ("timestamp", 1781861400),
        ("timestamp", ["now"]),
    ],
)
def test_a_key_of_the_wrong_kind_is_malformed(key: str, value: Any) -> None:
    """G15"""
    assert dropped_with(**{key: value}) in (Drop.MALFORMED, Drop.NOT_JSON)


def test_a_timestamp_is_kept_short_and_never_counted_with() -> None:
    """G16"""
    assert len(parse(json.dumps(a_payload(timestamp="9" * 500)).encode()).event.timestamp) == 40


def test_what_is_said_about_a_bad_event_is_short() -> None:
    """Its words end up in a log line."""
    with pytest.raises(BadEvent) as caught:
        parse(json.dumps(a_payload(seq="x" * 100_000)).encode())
    assert len(caught.value.message) < 200


@given(st.binary(max_size=300))
def test_any_bytes_are_an_event_or_a_named_drop(payload: bytes) -> None:
    """G15"""
    with suppress(BadEvent):  # which has a name; anything else fails
        parse(payload)


@given(
    st.dictionaries(
        st.sampled_from([*a_payload(), "sig", "other"]), VALUES | st.just(1), max_size=9
    )
)
def test_any_object_is_an_event_or_a_named_drop(content: dict[str, Any]) -> None:
    """G15, K3"""
    with suppress(BadEvent):
        message = parse(json.dumps({**a_payload(), **content}).encode())
        assert not message.is_from(TOKEN)
