"""Where in a TOML text a key stands: what makes "file, line and key" possible."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam_core.config.lines import key_lines, line_of

TEXT = '''\
# [not.a.table]
title = "a = 1 # no comment"

[ "quoted table" . 'literal.part' ]
one.two."three.four" = 3
inline = { a = 1, "b c" = { d = [1, 2], e.f = "}" } }
array = [
  1, # a ] in a comment
  { deep = "x" },
  """
[still.a.string]
fake = 1
""",
]
after = 1

[[rows]]
name = \'\'\'it's
"""quoted""" \'\'\'
day = 1979-05-27 07:32:00
[[rows]]
other = """""two quotes inside"" """
last = true
"escaped\\u0020key\\"" = 1
'''


def test_every_form_of_a_key_is_found_on_its_line() -> None:
    lines = key_lines(TEXT)
    table = ("quoted table", "literal.part")
    assert lines[("title",)] == 2
    assert lines[table] == lines[table[:1]] == 4
    assert lines[(*table, "one", "two", "three.four")] == 5
    assert lines[(*table, "inline", "b c", "e", "f")] == 6
    assert lines[(*table, "array")] == 7
    assert lines[(*table, "array", "deep")] == 9
    assert lines[(*table, "after")] == 15
    assert lines[("rows",)] == 17
    assert lines[("rows", "name")] == 18
    assert lines[("rows", "day")] == 20
    assert lines[("rows", "other")] == 22
    assert lines[("rows", "last")] == 23
    assert lines[("rows", 'escaped key"')] == 24
    assert not any("fake" in path or "not" in path for path in lines)


def test_lines_are_counted_alike_with_dos_line_ends() -> None:
    assert key_lines(TEXT.replace("\n", "\r\n")) == key_lines(TEXT)


def test_a_path_without_a_line_of_its_own_has_that_of_the_nearest_part() -> None:
    lines = key_lines("[agents.x]\nenv = { A = 'b' }\n")
    assert line_of(lines, ("agents", "x", "env", "A", "deeper")) == 2
    assert line_of(lines, ("agents", "x", "nothing")) == 1
    assert line_of(lines, ("nowhere",)) == 1


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", "a = 1"])
def test_a_small_text_has_few_keys(text: str) -> None:
    assert set(key_lines(text)) == {(key,) for key in tomllib.loads(text)}


# -- any text that the parser takes ------------------------------------------------------------

KEYS = ("k{}", '"k {}"', "'k.{}'", "a{}.b", 'a{}."b.c".d', "a{} . b")
VALUES = (
    "{m}",
    '"{m} # [x] {{ = "',
    '\'{m} """ \'',
    '"""{m}\n[no.table]\nno = 1\n"""',
    "'''{m}\n# '' no\n'''",
    "[{m}, # ]\n  [2, 'x = 1'],\n]",
    "[ # {{\n\n  {{ inner = {m} }}, ]",
    "{{ x = {m} }}",
    '{{ "x.y" = {{ z.w = {m} }} }}',
    "{m} # = comment [ ",
)
BETWEEN = ("", "\n", "# a [comment] = 1\n", "  \t\n")


@st.composite
def documents(draw: st.DrawFn) -> str:
    numbers = itertools.count(100_000)
    parts: list[str] = []
    for at in range(draw(st.integers(1, 8))):
        if draw(st.booleans()):
            header = draw(st.sampled_from(["[t{}]", '[t{}."x.y"]', "[ t{} . 'z' ]", "[[r{}]]"]))
            parts.append(header.format(at) + draw(st.sampled_from(["\n", " # [c]\n"])))
        key = draw(st.sampled_from(KEYS)).format(at)
        value = draw(st.sampled_from(VALUES)).format(m=next(numbers))
        parts.append(f"{key} = {value}\n" + draw(st.sampled_from(BETWEEN)))
    return "".join(parts)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, path)
    else:
        yield path, str(value)


@given(documents())
def test_each_key_is_found_on_the_line_of_its_value(text: str) -> None:
    lines = key_lines(text)
    rows = text.split("\n")
    for path, value in _leaves(tomllib.loads(text)):
        marker = value.strip()[:6]
        if not marker.isdigit() or int(marker) < 100_000:
            continue
        (row,) = [at for at, words in enumerate(rows, 1) if marker in words]
        assert lines[path] == row, text
