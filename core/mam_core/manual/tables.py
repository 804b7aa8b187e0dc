"""A Markdown table in a terminal: columns that fit, cells that break."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from mam_core.manual.inline import broken, marked, strong, width_of

_GAP = "  "
#: No column is narrower than its longest word, unless that is longer than this.
_LONG_WORD = 40
_RULE = re.compile(r"[\s:|]*-[\s:|-]*")
_CELLS = re.compile(r"(?<!\\)\|")


def is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def table(rows: Sequence[str], width: int, *, colour: bool) -> Iterator[str]:
    """The first row is the head, and may be empty; the second only draws a line."""
    cells = [_cells(row, colour) for row in rows if not _RULE.fullmatch(row.strip())]
    if not cells:
        return
    count = max(map(len, cells))
    cells = [[*row, *[""] * (count - len(row))] for row in cells]
    widths = _widths(cells, width)
    head, *rest = cells
    if any(head):
        yield from _lines([strong(cell, colour=colour) if cell else "" for cell in head], widths)
        yield _GAP.join("-" * wide for wide in widths)
    for row in rest:
        yield from _lines(row, widths)


def _cells(row: str, colour: bool) -> list[str]:
    """An escaped bar is a bar."""
    inside = row.strip().removeprefix("|").removesuffix("|")
    return [
        marked(cell.strip().replace("\\|", "|"), colour=colour) for cell in _CELLS.split(inside)
    ]


def _widths(cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """As wide as their longest cell; where that is too much, the widest give way."""
    columns = list(zip(*cells, strict=True))
    widths = [max(map(width_of, column)) for column in columns]
    floors = [
        min(
            _LONG_WORD, max((width_of(word) for cell in column for word in cell.split()), default=0)
        )
        for column in columns
    ]
    room = width - len(_GAP) * (len(widths) - 1)
    while sum(widths) > room:
        wide = [at for at, floor in enumerate(floors) if widths[at] > floor]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    columns = [list(broken(cell, wide)) for cell, wide in zip(row, widths, strict=True)]
    for parts in zip_longest(*columns, fillvalue=""):
        padded = (
            part + " " * (wide - width_of(part)) for part, wide in zip(parts, widths, strict=True)
        )
        yield _GAP.join(padded).rstrip()
