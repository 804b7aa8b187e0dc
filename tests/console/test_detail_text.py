"""The parts of the detail panel that are no widgets: colours, line breaks, the names of tabs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from mam_core.safe_text import cell_width, fitting, safe
from mam_tui.widgets.detail.sgr import PLAIN, Sgr, parse, parse_all
from mam_tui.widgets.detail.spans import (
    MOST_CHARS,
    Line,
    Paragraph,
    Span,
    height,
    plain_lines,
    wrap,
)
from mam_tui.widgets.detail.tab_bar import laid_out
from tests.console.detail_story import HOSTILE

NAMES = ("timeline", "tail", "pane", "record", "artifacts", "output", "diff", "why")


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


class TestColours:
    def test_colours_stay_and_everything_else_goes(self) -> None:
        line, left = parse(PLAIN, "a\x1b[1;31mb\x1b[2Jc\x1b]0;title\x07d\x1b[0me\x1b(B\x1b7f")
        assert text_of(line) == "abcdef"
        assert left == PLAIN
        red = [span.style for span in line if span.text in ("b", "c", "d")]
        assert all(isinstance(style, Style) and style.bold and style.color for style in red)

    def test_a_colour_runs_on_over_the_end_of_a_line(self) -> None:
        lines, left = parse_all(PLAIN, ["\x1b[32mgreen", "still\x1b[39m", "plain"])
        assert isinstance(lines[1][0].style, Style)
        assert lines[2][0].style == ""
        assert left == PLAIN

    @pytest.mark.parametrize(
        ("codes", "style"),
        [
            ("38;5;208", Sgr(fore="color(208)")),
            ("38:2::1:2:3", Sgr(fore="#010203")),
            ("48;2;1;2;3", Sgr(back="#010203")),
            ("97;44", Sgr(fore="color(15)", back="color(4)")),
            ("4:3", Sgr(underline=True)),
            ("1;22", PLAIN),
            ("4;4:0", PLAIN),
            ("38;5;999", PLAIN),
            ("38;5", PLAIN),
            ("8;5", PLAIN),  # hidden and blinking text is text
            ("99999999999999999", PLAIN),
        ],
    )
    def test_what_codes_mean(self, codes: str, style: Sgr) -> None:
        assert parse(PLAIN, f"\x1b[{codes}mx")[1] == style

    def test_a_line_is_parsed_once_for_each_style_that_is_carried_in(self) -> None:
        screen = [f"\x1b[3{n % 8}mline {n}" for n in range(20)]
        parse.cache_clear()
        parse_all(PLAIN, screen)
        parse_all(PLAIN, screen)
        assert parse.cache_info().misses == 20
        parse_all(PLAIN, [*screen[:10], "changed", *screen[11:]])
        assert parse.cache_info().misses <= 22

    def test_a_long_line_is_cut_before_it_is_styled(self) -> None:
        assert len(text_of(parse(PLAIN, "x" * 90_000)[0])) == MOST_CHARS
        assert len(text_of(parse(PLAIN, "\x1b[31mx" * 90_000)[0])) <= MOST_CHARS

    @given(st.text(alphabet=st.characters(), max_size=200))
    def test_whatever_is_printed_no_control_character_is_left(self, raw: str) -> None:
        for line in parse_all(PLAIN, [raw, HOSTILE + raw])[0]:
            assert "\x1b" not in text_of(line)
            assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text_of(line))


class TestBreaking:
    def test_between_words_and_further_in_from_the_second_row_on(self) -> None:
        rows = wrap(Paragraph((Span("one two "), Span("three four", "key")), 2), 9)
        assert [text_of(row) for row in rows] == ["one two", "  three", "  four"]
        assert rows[1][1] == Span("three", "key")

    def test_a_word_that_is_too_long_is_broken(self) -> None:
        assert [text_of(row) for row in wrap(Paragraph((Span("abcdefgh"),)), 3)] == [
            "abc",
            "def",
            "gh",
        ]

    def test_indented_text_keeps_its_indent(self) -> None:
        assert text_of(wrap(Paragraph((Span("    code here"),)), 8)[0]) == "    code"

    @given(st.text(max_size=120), st.integers(4, 40), st.integers(0, 10))
    def test_no_row_is_too_wide_and_no_character_is_lost(
        self, text: str, width: int, indent: int
    ) -> None:
        paragraph = Paragraph((Span(safe(text)[:7]), Span(safe(text)[7:], "key")), indent)
        rows = wrap(paragraph, width)
        assert len(rows) == height(paragraph, width)
        assert all(cell_width(text_of(row)) <= max(2, width) for row in rows)
        whole = "".join(text_of(row) for row in rows)
        assert whole.replace(" ", "") == safe(text).replace(" ", "")

    def test_line_ends_stay_and_a_long_line_is_not_cut_off(self) -> None:
        lines = plain_lines("a\r\n\n\tb\rc\n" + "x" * 10_000)
        assert lines[:3] == ["a", "", "    b\\rc"]
        assert "".join(lines[3:]) == "x" * 10_000
        assert max(map(len, lines)) <= MOST_CHARS

    @given(st.text(max_size=60), st.integers(0, 30))
    def test_as_many_characters_fit_as_there_are_columns_for(self, text: str, cells: int) -> None:
        shown = safe(text)
        fits = fitting(shown, cells)
        assert cell_width(shown[:fits]) <= cells
        assert fits == len(shown) or cell_width(shown[: fits + 1]) > cells


class TestTabNames:
    @pytest.mark.parametrize("chosen", NAMES)
    def test_all_of_them_stand_on_60_columns(self, chosen: str) -> None:
        places = laid_out(NAMES, chosen, 59)
        assert [place.name for place in places] == list(NAMES)
        assert places[-1].at + len(places[-1].text) <= 59

    @pytest.mark.parametrize("chosen", NAMES)
    def test_the_chosen_one_is_seen_on_any_width(self, chosen: str) -> None:
        for width in range(12, 100):
            places = laid_out(NAMES, chosen, width)
            assert f"[{chosen}]" in [place.text for place in places]
            ends = [place.at + len(place.text) for place in places]
            assert ends[-1] <= width
            assert all(end < after.at for end, after in zip(ends, places[1:], strict=False))
