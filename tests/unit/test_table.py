"""A table for a terminal: it fits, and its columns line up whatever the cells hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mam_core.safe_text import cell_width
from mam_core.table import Column, age, render
from tests.support.rows import each_row

CELLS = st.lists(st.text(max_size=40), min_size=3, max_size=3)


@each_row(
    ("seconds", "words"),
    [
        (-5, "0s"),
        (0.9, "0s"),
        (59, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h"),
        (47.9 * 3600, "47h"),
        (48 * 3600, "2d"),
        (400 * 86400, "400d"),
    ],
)
def test_ages_are_what_people_say(seconds: float, words: str) -> None:
    assert age(seconds) == words


@given(CELLS, CELLS, CELLS, st.integers(1, 120))
def test_no_line_is_wider_than_the_terminal(
    ids: list[str], labels: list[str], prompts: list[str], width: int
) -> None:
    columns = [
        Column("ID", ids),
        Column("LABEL", labels, flexible=True),
        Column("PROMPT", prompts, flexible=True),
    ]
    lines = list(render(columns, width))
    assert len(lines) == 4
    assert max(map(cell_width, lines)) <= width


def test_wide_characters_keep_the_columns() -> None:
    columns = [
        Column("NAME", ["plain", "한국어", "e\u0301e\u0301"]),
        Column("END", ["|", "|", "|"]),
    ]
    heading, *lines = render(columns, 80)
    assert heading == "NAME    END"
    assert [cell_width(line) for line in lines] == [9, 9, 9]


def test_the_widest_column_gives_way_first() -> None:
    columns = [
        Column("ID", ["abcdefgh"]),
        Column("LABEL", ["tmux:claude"], flexible=True),
        Column("PROMPT", ["a long prompt that goes on and on"], flexible=True),
    ]
    assert list(render(columns, 40)) == [
        "ID        LABEL        PROMPT",
        "abcdefgh  tmux:claude  a long prompt th…",
    ]
    assert list(render(columns, 28)) == [
        "ID        LABEL     PROMPT",
        "abcdefgh  tmux:cl…  a long …",
    ]


def test_a_terminal_too_narrow_for_all_cuts_the_lines() -> None:
    columns = [Column("ID", ["abcdefgh"]), Column("STATUS", ["running"])]
    assert list(render(columns, 12)) == ["ID        S…", "abcdefgh  r…"]


def test_colour_is_put_around_the_cell_and_changes_no_width() -> None:
    columns = [
        Column("STATUS", ["error", "odd"], colours={"error": "<red>"}),
        Column("NEXT", ["x", "y"]),
    ]
    assert list(render(columns, 40)) == [
        "STATUS  NEXT",
        "<red>error \x1b[0m  x",
        "odd     y",
    ]


def test_without_rows_there_is_the_heading() -> None:
    assert list(render([Column("A", []), Column("B", [])], 40)) == ["A  B"]
