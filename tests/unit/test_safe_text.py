"""Foreign text on its way to a terminal: nothing that acts gets through, and columns stay."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mam_core.safe_text import (
    MAX_MARKS,
    cell_width,
    clip,
    escape_json,
    one_line,
    pad,
    safe,
    safe_json,
)
from tests.support.rows import each_row

#: Every kind of character, lone surrogates too, and more of the nasty ones than chance would give.
NASTY = "\x00\x07\t\n\r\x1b\x7f\x85\x9b\u061c\u200b\u200d\u202e\u2028\u2066\ufeff\ufe0f\U000e0041"
TEXTS = st.text(
    st.one_of(
        st.characters(exclude_categories=()),
        st.sampled_from(NASTY + "aé한語\u0301\u0300\u1161🙂 ｆ"),
    )
)
ACTING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def acting(text: str) -> list[str]:
    return [hex(ord(c)) for c in text if unicodedata.category(c) in ACTING]


@given(TEXTS)
def test_nothing_that_acts_on_a_terminal_leaves(text: str) -> None:
    assert acting(safe(text)) == []
    assert acting(one_line(text)) == []


@given(TEXTS)
def test_only_what_was_allowed_to_pass_does(text: str) -> None:
    assert set(acting(safe(text, keep="\n\t"))) <= {"0xa", "0x9"}


@given(TEXTS)
def test_what_is_safe_stays_as_it_is(text: str) -> None:
    assert safe(safe(text)) == safe(text)
    assert one_line(one_line(text)) == one_line(text)


@given(TEXTS, TEXTS)
def test_widths_add_up(one: str, other: str) -> None:
    one, other = safe(one), safe(other)
    assert cell_width(one + other) == cell_width(one) + cell_width(other)


@given(TEXTS, st.integers(-2, 30))
def test_a_clipped_text_fits_and_a_padded_one_fills(text: str, cells: int) -> None:
    text = safe(text)
    assert cell_width(clip(text, cells)) <= max(cells, 0)
    assert cell_width(pad(text, cells)) == max(cells, 0)
    if cell_width(text) <= cells:
        assert clip(text, cells) == text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


@given(VALUES, st.sampled_from([None, 2]))
def test_json_is_harmless_and_means_the_same(value: Any, indent: int | None) -> None:
    text = safe_json(value, indent)
    assert set(acting(text)) <= {"0xa"}
    assert json.loads(text) == json.loads(json.dumps(value))


@given(VALUES)
def test_json_of_others_is_made_harmless_and_means_the_same(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, indent="\t").replace("\n", "\r\n")
    escaped = escape_json(text)
    assert set(acting(escaped)) <= {"0xa", "0x9"}
    assert json.loads(escaped) == json.loads(text)


@each_row(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x9b2J", r"\x9b2J"),
        ("abc\u202efed", r"abc\u202efed"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("tag \U000e0041", r"tag \U000e0041"),
        ("lone \udc80", r"lone \udc80"),
        ("hidden \u3164", r"hidden \u3164"),
        ("private \ue000", r"private \ue000"),
        ("한국어 日本語 עברית ไทย", "한국어 日本語 עברית ไทย"),
        ("warning \u26a0\ufe0f", "warning \u26a0"),
        ("agreed 👍\U0001f3fd", "agreed 👍"),
        ("no-break\u00a0space", "no-break\u00a0space"),
    ],
)
def test_dangerous_characters_are_shown_and_languages_are_left_alone(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_a_pile_of_marks_is_cut_down() -> None:
    shown = safe("a" + "\u0301" * 500 + "b")
    assert shown == "a" + "\u0301" * MAX_MARKS + "…b"
    assert cell_width(shown) == 3


def test_a_pile_of_marks_in_json_is_spelled_out() -> None:
    value = "a" + "\u0301" * 500
    text = safe_json(value)
    assert text.count("\u0301") == MAX_MARKS
    assert json.loads(text) == value


@each_row(
    ("text", "width"),
    [("abc", 3), ("한글", 4), ("e\u0301", 1), ("🙂", 2), ("ｆ", 2), ("\u1112\u1161\u11ab", 2)],
)
def test_widths_are_those_of_a_terminal(text: str, width: int) -> None:
    assert cell_width(text) == width


def test_a_wide_character_that_does_not_fit_is_left_out() -> None:
    assert clip("한글글", 5) == "한글…"
    assert clip("한글글", 4) == "한…"
    assert pad("한글글", 4) == "한… "


def test_white_space_of_every_kind_becomes_one_space() -> None:
    assert one_line("  one\n\n two\u2028three\t\x1cfour ") == "one two three four"
