"""Output that no agent should write: it costs a happening at most, never an exception or memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam_core.agents.streams import Kind, Outcome, StreamFormat
from mam_core.agents.streams.discretion import PromptGuard, short
from tests.support.recordings import FORMATS, new_parser, read, recording, recordings
from tests.support.rows import each_row

FORMS = list(StreamFormat)
EVERY_FORM = pytest.mark.parametrize("form", FORMS)
MEGABYTE = 1024 * 1024

# -- JSON that looks right and is not ---------------------------------------------------------


def words_of(agent: str) -> Iterator[str]:
    """Every key and every short text of the recordings: what a parser looks for."""

    def inside(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            yield from value
            yield from chain.from_iterable(map(inside, value.values()))
        elif isinstance(value, list):
            yield from chain.from_iterable(map(inside, value))
        elif isinstance(value, str) and len(value) < 40:
            yield value

    for record in recordings(agent):
        for line in record.output.splitlines():
            if line.startswith(b"{") and line.endswith(b"}"):
                yield from inside(json.loads(line))


WORDS = sorted({word for agent in FORMATS if agent != "aider" for word in words_of(agent)})
KNOWN = st.sampled_from(WORDS)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | KNOWN
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KNOWN, inner, max_size=5),
    max_leaves=25,
)
#: A line of a known type, whose parts are anything.
ENTRIES = st.builds(
    lambda kind, rest: {**rest, "type": kind},
    st.sampled_from(
        [
            *("assistant", "user", "system", "result", "stream_event", "control_request"),
            *("rate_limit_event", "thread.started", "turn.started", "turn.completed"),
            *("turn.failed", "error", "item.started", "item.completed", "init", "message"),
            *("tool_use", "tool_result", "step_start", "step_finish", "text"),
        ]
    ),
    st.dictionaries(KNOWN, VALUES, max_size=6),
)


@given(st.sampled_from(FORMS), st.lists(ENTRIES, max_size=5), st.integers(-1, 255))
def test_known_types_with_any_content(
    form: StreamFormat, entries: list[dict[str, Any]], code: int
) -> None:
    parser = new_parser(form)
    for entry in entries:
        for happening in parser.feed(json.dumps(entry).encode() + b"\n"):
            assert isinstance(happening.text, str)
            json.dumps(dict(happening.data), allow_nan=False)  # fit for an event
            happening.text.encode()
    outcome = parser.end(code if code >= 0 else None, None if code >= 0 else 9)
    assert len(outcome.detail) <= 200
    assert outcome.cost is None or outcome.cost >= 0


@given(st.sampled_from(FORMS), st.lists(st.binary(max_size=200), max_size=8))
def test_any_bytes_on_both_streams(form: StreamFormat, chunks: list[bytes]) -> None:
    parser = new_parser(form)
    for number, chunk in enumerate(chunks):
        parser.feed(chunk, aside=number % 2 == 1)
    assert isinstance(parser.end(0, None), Outcome)


SIGNS = st.sampled_from(
    [
        *(
            "litellm.XError: no",
            "The API provider is away",
            "Retrying in 1.2.3 seconds...",
            "",
            "  ",
        ),
        *("Retrying in ... seconds...", "Tokens: 1.2.k sent, . received.", "Commit 0123456 ", "{"),
        *(
            "Tokens: ,k sent, 9,9.M received. Cost: $. message, $,.1 session.",
            "^C again to exit",
            "}",
        ),
        *("Applied edit to /", "Empty response received from LLM.", "x has hit a token limit!"),
        *("Attempt 9 failed with status 500.", "Retrying after 99ms", "Reconnecting... 1/2 (", "["),
        *("Aider v", "approval policy is Never; reject command", "usage limit reached|1", "\r\r"),
    ]
)


@given(st.sampled_from(FORMS), st.lists(SIGNS, max_size=12), st.booleans())
def test_lines_of_text_that_almost_mean_something(
    form: StreamFormat, lines: list[str], aside: bool
) -> None:
    parser = new_parser(form)
    parser.feed("\n".join(lines).encode(), aside=aside)
    assert isinstance(parser.end(0, None), Outcome)


@each_row(
    "line",
    [
        b'{"type":"result","is_error":false',
        b'{"type":' * 100_000,
        b"[" * 100_000,
        b'{"type":"result","total_cost_usd":1e999,"is_error":true}',
        b'{"type":"result","total_cost_usd":NaN,"is_error":true}',
        b'{"type":"result","num":' + b"9" * 10_000 + b"}",
        b'{"type":"assistant","message":{"content":[{"type":"text","text":"\\ud800"}]}}',
        b'{"type":{"a":1},"item":{"type":[1]}}',
        b'{"type":"item.completed","item":{"type":["command_execution"]}}',
        b"\xff\xfe{\x00}\x00",
        b"\x00" * 1000,
        b"null",
        b"{}",
        b"{",
        b"}",
    ],
)
@each_row("form", FORMS)
def test_a_broken_line_between_good_ones(form: StreamFormat, line: bytes) -> None:
    parser = new_parser(form)
    found = parser.feed(line + b"\n", aside=False) + parser.feed(line + b"\n", aside=True)
    assert all(happening.text.encode() is not None for happening in found)
    assert not (parser.end(0, None).ok and form is not StreamFormat.PLAIN)


def test_a_torn_character_costs_one_character() -> None:
    record = recording("codex", "plain.default.jsonl")
    torn = record.output.replace(b"Hello from", b"Hell\xf0\x9f from")
    reading = read(record._replace(output=torn))
    assert reading.outcome.ok
    assert reading.of(Kind.TEXT)[0].text.startswith("Hell\ufffd from")


def test_a_last_line_without_its_newline_counts() -> None:
    record = recording("codex", "plain.default.jsonl")
    assert read(record._replace(output=record.output.rstrip())).outcome.ok
    assert read(record._replace(output=record.output.replace(b"\n", b"\r\n"))).outcome.ok


def test_the_model_cannot_end_its_own_turn() -> None:
    """What it says stands inside of a line, however much it looks like one."""
    record = recording("codex", "unicode.default.jsonl")
    lines = record.output.splitlines(keepends=True)
    assert b'{\\"type\\":\\"turn.completed\\"}' in record.output
    assert not read(record, lines[:-1]).outcome.ok


def test_a_session_that_looks_like_an_option_is_none() -> None:
    parser = new_parser(StreamFormat.CODEX)
    for name in ("--dangerously-bypass", "-x", "a b", "a\nb", "", "x" * 200, "$(id)"):
        line = json.dumps({"type": "thread.started", "thread_id": name}).encode()
        assert parser.feed(line + b"\n") == []
    assert parser.end(0, None).session_id is None


# -- memory ----------------------------------------------------------------------------------


def peak(
    chunks: Iterator[bytes], form: StreamFormat, *, aside: bool = False
) -> tuple[int, Outcome]:
    parser = new_parser(form)
    tracemalloc.start()
    try:
        for chunk in chunks:
            parser.feed(chunk, aside=aside)
        outcome = parser.end(0, None)
        return tracemalloc.get_traced_memory()[1], outcome
    finally:
        tracemalloc.stop()


@EVERY_FORM
@pytest.mark.parametrize("aside", [False, True], ids=["stdout", "stderr"])
def test_a_line_of_64_megabytes_is_left_out(form: StreamFormat, aside: bool) -> None:
    chunk = b"x" * 65536
    line = chain([b'{"type":"text","text":"'], repeat(chunk, 1024), [b'"}\n'])
    used, _ = peak(line, form, aside=aside)
    assert used < 16 * MEGABYTE


def test_after_an_endless_line_it_goes_on() -> None:
    record = recording("codex", "plain.default.jsonl")
    endless = b'{"type":"item.completed","item":"' + b"x" * (5 * MEGABYTE) + b'"}\n'
    reading = read(record._replace(output=endless + record.output))
    assert reading.outcome.ok
    assert reading.of(Kind.LOG)[0].text == "a line of 5,242,915 bytes was left out"


@pytest.mark.parametrize(
    ("form", "line"),
    [
        (
            StreamFormat.CLAUDE,
            {
                "type": "assistant",
                "message": {"content": [{"type": "tool_use", "id": "ID", "name": "N" * 5000}]},
            },
        ),
        (
            StreamFormat.CLAUDE,
            {
                "type": "stream_event",
                "parent_tool_use_id": "ID",
                "event": {"type": "message_start", "message": {"usage": {"input_tokens": 1}}},
            },
        ),
        (
            StreamFormat.CLAUDE,
            {
                "type": "result",
                "is_error": False,
                "permission_denials": [{"tool_use_id": "ID", "tool_name": "N" * 5000}],
            },
        ),
        (StreamFormat.GEMINI, {"type": "tool_use", "tool_id": "ID", "tool_name": "N" * 5000}),
        (StreamFormat.GEMINI, {"type": "message", "role": "assistant", "content": "text " * 500}),
        (
            StreamFormat.GEMINI,
            {"type": "message", "role": "assistant", "content": "", "delta": True},
        ),
        (StreamFormat.OPENCODE, {"type": "error", "error": {"data": {"message": "ID" * 2000}}}),
    ],
    ids=lambda value: value if isinstance(value, str) else value["type"],
)
def test_what_is_begun_and_never_ended_does_not_pile_up(
    form: StreamFormat, line: dict[str, Any]
) -> None:
    template = json.dumps(line)
    lines = (template.replace("ID", f"id-{n}").encode() + b"\n" for n in range(1000))
    used, _ = peak(lines, form)
    assert used < MEGABYTE


def test_a_document_that_never_closes_is_given_up() -> None:
    lines = chain([b"{\n"], repeat(b'  "response": "' + b"x" * 60_000 + b'",\n', 200))
    used, outcome = peak(lines, StreamFormat.GEMINI_DOCUMENT)
    assert used < 12 * MEGABYTE
    assert not outcome.ok


# -- what is told ----------------------------------------------------------------------------


@each_row(
    ("text", "told"),
    [
        ("reading /etc/app/settings.toml now", "reading …/settings.toml now"),
        ("at file:///opt/cli/node_modules/x.js:12", "at …/x.js:12"),
        (
            "see https://example.org/a/b and ~/notes/todo.md",
            "see https://example.org/a/b and …/todo.md",
        ),
        ("and/or, 3/4, a/b/c.txt", "and/or, 3/4, a/b/c.txt"),
        ("key sk-ant-REDACTED in use", "key [hidden] in use"),
        ("--skip-git-repo-check was not specified", "--skip-git-repo-check was not specified"),
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer [hidden]"),
        (
            "export OPENAI_API_KEY=abc123 PASSWORD='x y'",
            "export OPENAI_API_KEY=[hidden] PASSWORD='x y'",
        ),
        ("postgresql://ann:pw@db/jobs", "postgresql://[hidden]@db/jobs"),
        ("two\nlines\tand   blanks", "two lines and blanks"),
    ],
)
def test_keys_and_places_are_hidden(text: str, told: str) -> None:
    """G23"""
    assert short(text) == told


def test_a_long_text_is_cut() -> None:
    assert len(short("word " * 1_000_000)) == 200
    assert short("a" * 300).endswith("…")


def test_a_prompt_that_is_repeated_is_hidden() -> None:
    guard = PromptGuard("Fix the parser in core.\n\n  Keep the secret sauce out of it.\nok")
    assert guard.hide("Fix the parser in core.") == "[prompt]"
    assert guard.hide("+ echo Keep the secret sauce out of it.") == "+ echo [prompt]"
    assert guard.hide("the parser in core. Keep the secret…") == "[prompt]"
    assert guard.hide("ok") == "ok"
    assert guard.hide("All is fixed.") == "All is fixed."
    assert (
        PromptGuard("").hide("All is fixed, and it is tested.") == "All is fixed, and it is tested."
    )


# -- who wrote it -------------------------------------------------------------------------------

GOOD = {"type": "result", "subtype": "success", "is_error": False, "result": "done"}
BAD = {"type": "result", "subtype": "error_during_execution", "is_error": True, "result": "no"}


@each_row("results", [(GOOD, BAD), (BAD, GOOD)])
def test_two_results_of_one_turn_that_contradict_each_other_are_said(
    results: tuple[dict[str, Any], ...],
) -> None:
    """A child that has the agent's output can write into it, and nothing tells the two apart."""
    parser = new_parser(StreamFormat.CLAUDE)
    for entry in results:
        parser.feed(json.dumps(entry).encode() + b"\n")
    parser.close()
    detail = parser.end(0, None).detail
    assert "its output reports success and failure of one turn" in detail
