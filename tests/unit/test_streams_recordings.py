"""Every recording of a real agent, read: what is found in it is what a person checked."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from mam_core.agents.streams import Kind, Outcome
from mam_core.agents.streams.events import Pace, told
from mam_core.records import Reason
from tests.support.recordings import (
    FORMATS,
    Recording,
    expected_path,
    new_parser,
    read,
    recordings,
    shown,
)
from tests.support.rows import each_row

AGENTS = list(FORMATS)
ALL = [record for agent in AGENTS for record in recordings(agent)]
EVERY = each_row("record", ALL)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    marks = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(marks)]


@each_row("agent", AGENTS)
def test_what_is_read_is_what_was_checked(agent: str) -> None:
    assert shown(agent) == expected_path(agent).read_text()


@each_row("agent", AGENTS)
def test_bytes_that_come_one_by_one_say_the_same(agent: str) -> None:
    for record in recordings(agent):
        single = [record.output[n : n + 1] for n in range(len(record.output))]
        assert read(record, single) == read(record), record.name


@given(st.sampled_from(ALL), st.lists(st.integers(0, 2**20), max_size=12))
@settings(max_examples=200)
def test_however_the_bytes_are_cut_they_say_the_same(record: Recording, cuts: list[int]) -> None:
    assert read(record, pieces(record.output, cuts)) == read(record)


@EVERY
def test_both_streams_in_one_pipe_end_alike(record: Recording) -> None:
    """A worker may join standard error to standard output."""
    parser = new_parser(record.form)
    parser.feed(record.aside)
    parser.feed(record.output)
    assert parser.end(record.exit_code, record.signal) == read(record).outcome


@EVERY
def test_a_stream_without_its_last_line_is_never_done(record: Recording) -> None:
    lines = record.output.splitlines(keepends=True)
    reading = read(record)
    if not reading.outcome.ok:
        return
    # Back to before the line that said that all was well, and then exit 0 all the same.
    while reading.of(Kind.RESULT):
        lines.pop()
        reading = read(record, lines)
    assert reading.outcome.reason is Reason.AGENT


@EVERY
def test_a_good_last_line_and_a_bad_exit_is_not_done(record: Recording) -> None:
    if read(record).outcome.ok:
        parser = new_parser(record.form)
        parser.feed(record.output)
        assert parser.end(1, None).reason is Reason.EXIT
        parser = new_parser(record.form)
        parser.feed(record.output)
        assert parser.end(None, 9).reason is Reason.SIGNAL


@EVERY
def test_nothing_private_is_told(record: Recording) -> None:
    """G23: no prompt, no absolute path, no key"""
    reading = read(record)
    scenario = record.name.partition(".")[0]
    pace = Pace(f"mam-{scenario}: please do what the scenario says.")
    events = [
        released
        for number, happening in enumerate(reading.happenings)
        if (event := told(happening))
        for released in pace.offer(event, 10.0 * number)
    ]
    for words in [reading.outcome.detail, *(f"{e.detail} {dict(e.data)}" for e in events)]:
        assert "please do what the scenario says" not in words
        assert "scenario=" not in words
        assert "/workdir/" not in words
        assert "provided: test" not in words
    assert all(len(event.detail) <= 300 for event in events)
    assert len(reading.outcome.detail) <= 200


@EVERY
def test_totals_never_sink(record: Recording) -> None:
    """Usage lines repeat, so totals are told and never differences."""
    readings = read(record)
    seen = [happening.data["input"] for happening in readings.of(Kind.TOKENS)]
    assert seen == sorted(seen)
    assert (seen[-1] if seen else 0) == readings.outcome.tokens.input


def test_recordings_mixed_at_random_break_nothing() -> None:
    """Lines of one agent in another's parser, in any order: believed or not, never an exception."""
    chance = Random(5)
    lines = [line for record in ALL for line in record.output.splitlines(keepends=True)]
    for form in (*FORMATS.values(),):
        parser = new_parser(form)
        for _ in range(3000):
            line = chance.choice(lines)
            parser.feed(line if chance.random() < 0.8 else line[: chance.randrange(len(line) + 1)])
        assert isinstance(parser.end(0, None), Outcome)
