"""The pages of promises and security name their proofs: each is there, no fault is left out."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

_TESTS = Path(__file__).parents[1]
_PAGE = _TESTS.parent / "docs" / "promises.md"
_PAGES = (_PAGE, _PAGE.with_name("security.md"))

_NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`(?P<release> \(release\))?")
_NUMBERED = re.compile(r"^(\d+)\. ", re.MULTILINE)


def _section(title: str) -> str:
    """From its heading to the next one of the same rank."""
    found = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", _PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def _entries(title: str) -> dict[int, str]:
    """The numbered ones of a section, each with all its words."""
    text = _section(title)
    starts = list(_NUMBERED.finditer(text))
    ends = [*(one.start() for one in starts[1:]), len(text)]
    return {int(one[1]): text[one.end() : end] for one, end in zip(starts, ends, strict=True)}


@cache
def _tests_of(path: str) -> dict[str, bool]:
    """Each test of a file, and whether only a release runs it."""
    tree = ast.parse((_TESTS / path).read_text())
    return {
        node.name: any("release" in ast.unparse(mark) for mark in node.decorator_list)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_test_that_is_named_is_there() -> None:
    named = [one for page in _PAGES for one in _NAMED.finditer(page.read_text())]
    missing = [
        one[0] for one in named if not (_TESTS / one[1]).exists() or one[2] not in _tests_of(one[1])
    ]
    assert not missing
    assert len(named) > 100


def test_what_only_a_release_runs_is_called_so() -> None:
    for one in _NAMED.finditer(_PAGE.read_text()):
        # One that is parametrised may be long in some of its cases only.
        if one["release"]:
            assert _tests_of(one[1])[one[2]], f"{one[0]} runs in every gate"


def test_ten_promises_and_sixty_six_faults_have_their_proof() -> None:
    for title, count in (("The ten promises", 10), ("The faults", 66)):
        entries = _entries(title)
        assert list(entries) == list(range(1, count + 1))
        unproven = [number for number, words in entries.items() if not _NAMED.search(words)]
        assert not unproven, f"{title}: {unproven}"
