"""Bytes and records: anything survives the way there and back, and nothing else gets in."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mam_core import codec
from mam_core.errors import UnreadableRecord
from mam_core.records import MAX_PROMPT_BYTES, Job
from tests.support.jobs import a_full_job
from tests.support.rows import each_row

EVERY_TEXT = st.text(st.characters(exclude_categories=()))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | EVERY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(EVERY_TEXT, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def read(data: bytes) -> Job | UnreadableRecord:
    """The two answers that there are; any other exception is the finding."""
    try:
        return codec.decode_job(data, "abc12345")
    except UnreadableRecord as problem:
        return problem


class TestThereAndBack:
    @settings(max_examples=300)
    @given(prompt=EVERY_TEXT, detail=EVERY_TEXT, label=EVERY_TEXT)
    def test_any_unicode_survives(self, prompt: str, detail: str, label: str) -> None:
        """A14: NUL, lone surrogates, Korean, whatever."""
        job = a_full_job().evolve(prompt=prompt, detail=detail, agent_session=label)
        assert codec.decode_job(codec.encode_job(job), "abc12345") == job

    @settings(max_examples=200)
    @given(st.dictionaries(EVERY_TEXT.map(lambda name: "x-" + name), JSON, max_size=5))
    def test_unknown_fields_survive(self, extra: dict[str, Any]) -> None:
        """Decision 5."""
        job = a_full_job().evolve(extra=extra)
        assert codec.decode_job(codec.encode_job(job), "abc12345").to_dict() == job.to_dict()

    @each_row("character", ["x", "\0", "가", "\ud800", "😀", '"', "\\", "\u2028"])
    def test_a_megabyte_survives_and_fits_the_limit(self, character: str) -> None:
        """A14: also where every byte has to be escaped."""
        size = len(character.encode("utf-8", "surrogatepass"))
        prompt = character * (MAX_PROMPT_BYTES // size)
        data = codec.encode_job(a_full_job().evolve(prompt=prompt))
        assert len(data) < codec.MAX_RECORD_BYTES
        assert codec.decode_job(data, "abc12345").prompt == prompt

    def test_a_person_and_any_tool_can_read_it(self) -> None:
        """A3, A14: UTF-8, a key a line, a newline at the end."""
        data = codec.encode_job(a_full_job())
        assert json.loads(data)["prompt"] == a_full_job().prompt
        assert "별을 세어라…".encode() in data
        assert data.endswith(b"}\n")
        assert data.count(b"\n") > 30


class TestForeignBytes:
    @each_row(
        ("data", "says"),
        [
            (b"", "it is empty"),
            (b"\n", "it is not JSON"),
            (b"{", "it is not JSON"),
            (b"null", "it is not a JSON object"),
            (b"[]", "it is not a JSON object"),
            (b'"text"', "it is not a JSON object"),
            (b"\xff\xfe{}", "it is not UTF-8"),
            (b"\xef\xbb\xbf{}", "it is not JSON"),
            (b"{}", "it has no schema_version"),
            (b'{"schema_version": 2}', "schema_version is 2"),
            (b'{"a": NaN}', "NaN is no JSON number"),
            (b'{"a": -Infinity}', "-Infinity is no JSON number"),
            (b'{"a": 1, "b": 2, "a": 3}', "the key 'a' stands twice"),
            (b"[" * 10_000, "it is nested too deeply"),
            (b'{"a":' * 10_000, "it is nested too deeply"),
            (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "it is nested too deeply"),
            (b"[" * 501 + b"]" * 501, "it is nested too deeply"),
            (b"[" * 500 + b"]" * 500, "it is not a JSON object"),
            (b"[" + b"[]," * 600 + b"1]", "it is not a JSON object"),
            (b'["' + b"[" * 600 + rb"\\\"" + b"{" * 600 + b'"]', "it is not a JSON object"),
            (b'"' + b"[" * 600, "it is not JSON"),
            (b'{"a": 1' + b"0" * 5000 + b"}", "it is not JSON"),
        ],
    )
    def test_is_said_to_be_what_it_is(self, data: bytes, says: str) -> None:
        """A18."""
        assert says in str(read(data))

    def test_a_record_of_another_job_is_not_believed(self) -> None:
        data = codec.encode_job(a_full_job("otherjob"))
        assert "it says that it is job otherjob" in str(read(data))

    def test_cut_at_every_byte_it_is_unreadable(self) -> None:
        """D4: whatever a crash of a foreign tool leaves behind."""
        data = codec.encode_job(a_full_job()).rstrip()
        for end in range(len(data)):
            assert isinstance(read(data[:end]), UnreadableRecord)

    def test_two_thousand_mutations_give_a_job_or_one_clear_line(self) -> None:
        """A18."""
        chance = random.Random(2026)
        original = codec.encode_job(a_full_job())
        for _ in range(2000):
            data = bytearray(original)
            for _ in range(chance.randint(1, 4)):
                place = chance.randrange(len(data))
                chance.choice(MUTATIONS)(data, place, chance)
            read(bytes(data))

    @settings(max_examples=600)
    @given(name=st.sampled_from(list(a_full_job().to_dict())), value=JSON)
    def test_any_value_under_any_key_gives_a_job_or_one_clear_line(
        self, name: str, value: Any
    ) -> None:
        """A18: types swapped."""
        read(codec.dumps(a_full_job().to_dict() | {name: value}))

    @settings(max_examples=200)
    @given(part=st.sampled_from(["broker", "lease"]), name=EVERY_TEXT, value=JSON)
    def test_the_same_one_level_down(self, part: str, name: str, value: Any) -> None:
        data = a_full_job().to_dict()
        for key in (name, *data[part]):
            read(codec.dumps(data | {part: data[part] | {key: value}}))


class TestWhatIsReadCanBeWrittenAgain:
    """A foreign record that is accepted must not break the first change of it."""

    @pytest.mark.parametrize("number", ["1e999", "-1e999"])
    @pytest.mark.parametrize("place", ['"future": %s', '"lease": {"owner":"x","ttl_sec":1,"z":%s}'])
    def test_a_number_too_big_for_a_float(self, place: str, number: str) -> None:
        """Valid JSON, read as infinity, which is no JSON."""
        self.check(place % number)

    @each_row("depth", [50, 300, 900, 970, 990])
    @each_row(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
    def test_a_deep_value(self, opening: str, closing: str, depth: int) -> None:
        self.check('"future": ' + opening * depth + "1" + closing * depth)

    def check(self, field: str) -> None:
        data = b'{"schema_version": 1, "job_id": "abc12345", "status": "pending", %s}'
        job = read(data % field.encode())
        if isinstance(job, Job):
            assert deeper(lambda: codec.encode_job(job), 30)


def deeper(work: Callable[[], bytes], frames: int) -> bytes:
    """Run `work` from further down the stack, as a rewrite is."""
    return work() if frames == 0 else deeper(work, frames - 1)


def _flip(data: bytearray, place: int, chance: random.Random) -> None:
    data[place] ^= 1 << chance.randrange(8)


def _cut(data: bytearray, place: int, chance: random.Random) -> None:
    del data[place : place + chance.randint(1, 40)]


def _insert(data: bytearray, place: int, chance: random.Random) -> None:
    data[place:place] = chance.choice(
        [b"\0", b"\xff", b'"', b"{", b"}", b"[", b"NaN", b"1e999", b"null", b"\\u0000", b"-", b","]
    )


def _repeat(data: bytearray, place: int, chance: random.Random) -> None:
    data[place:place] = data[place : place + chance.randint(1, 200)]


MUTATIONS = [_flip, _cut, _insert, _repeat]
