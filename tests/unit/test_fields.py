"""What a person may say: every word is taken or refused in one sentence, none breaks anything."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mam_core import codec, fields
from mam_core.clock import fine_stamp, parse_stamp, stamp
from mam_core.errors import InvalidField
from mam_core.fields import EDITABLE, SETTABLE, parse_duration, parse_moment, parse_size
from mam_core.records import Job, Status
from tests.support.clock import NOON
from tests.support.rows import each_row

EVERY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | EVERY_TEXT
    | st.sampled_from([10**400, -(10**400), "+1e9d", "+1e400d", "9" * 400, "1e400G"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(EVERY_TEXT, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=600)
@given(name=st.sampled_from(SETTABLE), value=ANYTHING)
def test_any_value_is_refused_by_name_or_can_be_kept(name: str, value: Any) -> None:
    """E3, E14, E15: a line of a bulk file may hold anything."""
    kept: dict[str, Any] = {}
    try:
        kept = fields.checked({name: value}, now=NOON)
        said = name
    except InvalidField as refusal:
        said = refusal.message
    assert said.startswith(name)
    job = Job("abc12345", Status.PENDING, **kept)
    assert codec.decode_job(codec.encode_job(job), "abc12345") == job


@given(EVERY_TEXT.filter(lambda name: name not in SETTABLE))
def test_an_unknown_key_is_named(name: str) -> None:
    with pytest.raises(InvalidField, match="cannot be set; what can: prompt"):
        fields.checked({name: 1}, now=NOON)


def test_identity_and_secrets_are_not_edited() -> None:
    assert set(SETTABLE) - set(EDITABLE) == {"key", "topic_prefix", "broker", "auth_token"}


class TestMoments:
    @each_row(
        ("text", "moment"),
        [
            ("2026-06-19T09:30:00Z", NOON),
            ("2026-06-19T18:30:00+09:00", NOON),
            ("2026-06-19 09:30", NOON),
            ("+90", NOON + 90),
            ("+90s", NOON + 90),
            ("+10m", NOON + 600),
            ("+1.5h", NOON + 5400),
            ("+1d", NOON + 86400),
        ],
    )
    def test_are_read(self, text: str, moment: float) -> None:
        """Decision 29."""
        assert parse_moment(text, NOON) == moment

    @each_row("text", ["", "+", "+m", "+-5m", "soon", "+0", "+nan", "+inf", "10m"])
    def test_or_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match="is no"):
            parse_moment(text, NOON)

    @given(st.datetimes().map(lambda moment: moment.isoformat() + "Z"))
    def test_a_stamp_of_any_year_is_read_back(self, text: str) -> None:
        """A9: what we write into a record we must be able to read."""
        seconds = parse_stamp(text)
        assert parse_stamp(stamp(seconds)) == seconds // 1

    @given(st.floats(0, 4e9))
    def test_stamps_sort_as_time_goes(self, seconds: float) -> None:
        """A9, F4."""
        assert stamp(seconds) <= stamp(seconds + 1)
        assert fine_stamp(seconds) < fine_stamp(seconds + 0.01)
        assert fine_stamp(seconds)[:19] == stamp(seconds)[:19]


class TestSizesAndDurations:
    @pytest.mark.parametrize(
        ("text", "size"), [("8G", 2**33), ("512M", 2**29), ("1.5k", 1536), ("4096", 4096)]
    )
    def test_sizes(self, text: str, size: int) -> None:
        """Decision 29."""
        assert parse_size(text) == size

    @each_row("text", ["", "G", "-1G", "0", "8GB", "nan", "inf", "1e400", "9e30T"])
    def test_no_sizes(self, text: str) -> None:
        with pytest.raises(ValueError, match="is no size"):
            parse_size(text)

    @given(EVERY_TEXT)
    def test_any_other_text_is_a_value_error_at_most(self, text: str) -> None:
        for parse in (parse_size, parse_duration):
            try:
                assert parse(text) > 0
            except ValueError:
                continue
