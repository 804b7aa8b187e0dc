"""Columns of text as a table that fits a terminal.

A column is as wide as what it holds; where the terminal is narrower, the widest
that may be cut give way first. Built for tens of thousands of rows: it works
column by column, so that a column of plain text costs no Python per cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat

from mam_core.safe_text import cell_width, clip, one_line, pad

GAP = "  "
#: A column that may be cut keeps at least this much.
LEAST = 8

_RESET = "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Column:
    """A heading over cells of foreign text."""

    heading: str
    cells: Sequence[str]
    flexible: bool = False  #: may be cut to fit
    colours: Mapping[str, str] = field(default_factory=dict)  #: cell to terminal code


def age(seconds: float) -> str:
    """How long, as people say it: ``3s``, ``4m``, ``2h``, ``5d``; never negative."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m"
    if whole < 2 * 86400:
        return f"{whole // 3600}h"
    return f"{whole // 86400}d"


def render(columns: Sequence[Column], width: int) -> Iterator[str]:
    """The heading and a line for each row, none wider than `width`."""
    texts = [[column.heading, *_safe_cells(column.cells)] for column in columns]
    plain = ["".join(cells).isascii() for cells in texts]
    natural = [
        max(map(len if simple else cell_width, cells))
        for cells, simple in zip(texts, plain, strict=True)
    ]
    widths = _fitted(natural, [column.flexible for column in columns], width)
    fits = sum(widths) + len(GAP) * (len(widths) - 1) <= width
    painted = [
        _painted(_sized(cells, simple, want, size), column.colours if fits else {}, cells)
        for column, cells, simple, want, size in zip(
            columns, texts, plain, natural, widths, strict=True
        )
    ]
    lines = map(str.rstrip, map(GAP.join, zip(*painted, strict=True)))
    return lines if fits else map(clip, lines, repeat(width))


def _safe_cells(cells: Sequence[str]) -> Sequence[str]:
    together = "".join(cells)
    if together.isascii() and together.isprintable():
        return cells
    return [one_line(cell) for cell in cells]


def _fitted(natural: Sequence[int], flexible: Sequence[bool], width: int) -> list[int]:
    widths = list(natural)
    surplus = sum(widths) + len(GAP) * (len(widths) - 1) - width
    for _ in range(surplus):
        widest = max(
            (at for at, cut in enumerate(flexible) if cut and widths[at] > LEAST),
            key=widths.__getitem__,
            default=None,
        )
        if widest is None:
            break
        widths[widest] -= 1
    return widths


def _sized(cells: Sequence[str], simple: bool, want: int, size: int) -> list[str]:
    """Every cell cut or filled up to `size` columns."""
    if not simple:
        return [pad(cell, size) for cell in cells]
    if want > size:
        # Plain text with an ellipsis still has one column a character.
        cells = [clip(cell, size) for cell in cells]
    return list(map(str.ljust, cells, repeat(size)))


def _painted(sized: list[str], colours: Mapping[str, str], cells: Sequence[str]) -> list[str]:
    if not colours:
        return sized
    return [
        f"{colours[cell]}{text}{_RESET}" if cell in colours else text
        for cell, text in zip(cells, sized, strict=True)
    ]
