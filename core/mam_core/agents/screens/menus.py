"""A list of choices on a screen: which there are, what each means, and how it is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mam_core.agents.screens.rules import Choice, Meaning, Menu

#: A choice may be explained in a few lines before the next one comes.
_LINES_BETWEEN = 4
_KEYS = {"esc": "Escape", "enter": "Enter"}


class Found(NamedTuple):
    """The list, and the line that it begins at."""

    at: int
    choices: tuple[Choice, ...]


class _Line(NamedTuple):
    number: str
    words: str
    marked: bool


def find_menu(menu: Menu | None, lines: Sequence[str]) -> Found | None:
    """The lowest list: numbers down to 1 without a gap, one of them marked.

    A numbered list in an answer of the model has no mark, so it is none.
    """
    if menu is None:
        return None
    found: list[_Line] = []
    since = 0
    at = len(lines)
    while at and (not found or found[0].number != "1"):
        at -= 1
        match = menu.line.match(lines[at])
        if match is None or (found and int(match["number"]) != int(found[0].number) - 1):
            since += bool(lines[at].strip())
            if since > _LINES_BETWEEN:
                return None
            continue
        since = 0
        found.insert(0, _Line(match["number"], match["words"].strip(" │┃"), bool(match["mark"])))
    if not found or found[0].number != "1" or not any(line.marked for line in found):
        return None
    return Found(at, _choices(menu, found))


def _choices(menu: Menu, lines: Sequence[_Line]) -> tuple[Choice, ...]:
    marked = next(place for place, line in enumerate(lines) if line.marked)
    meanings = [_meaning(menu, line.words) for line in lines]
    return tuple(
        Choice(
            line.words,
            _keys(menu, line, place - marked),
            # Two that say yes are no yes or no question: the operator must name one.
            meaning if meanings.count(meaning) == 1 else Meaning.OTHER,
            line.number,
            place == marked,
        )
        for place, (line, meaning) in enumerate(zip(lines, meanings, strict=True))
    )


def _keys(menu: Menu, line: _Line, steps: int) -> tuple[str, ...]:
    if menu.hint is not None and (hint := menu.hint.match(line.words)):
        return (_KEYS.get(hint["key"], hint["key"]),)
    if menu.by_number:
        return (line.number,)
    return (*(["Down" if steps > 0 else "Up"] * abs(steps)), "Enter")


def _meaning(menu: Menu, words: str) -> Meaning:
    for pattern, meaning in (
        (menu.always, Meaning.ALWAYS),
        (menu.yes, Meaning.YES),
        (menu.no, Meaning.NO),
    ):
        if pattern is not None and pattern.match(words):
            return meaning
    return Meaning.OTHER
