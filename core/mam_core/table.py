"""Columns of text as a table that fits a terminal.

A column is as wide as what it holds; where the terminal is narrower, the widest
that may be cut give way first, then whole columns go, and only then is one cut
below what it should keep. Built for tens of thousands of rows: it works column
by column, so that a column of plain text costs no Python per cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import NamedTuple

from mam_core.safe_text import ELLIPSIS, cell_width, one_line, pad

GAP = "  "
#: A column that may be cut keeps at least this much, unless it says otherwise.
LEAST = 8

_RESET = "\x1b[0m"


class Column(NamedTuple):
    """A heading over cells of foreign text."""

    heading: str
    cells: Sequence[str]
    flexible: bool = False  #: may be cut to fit
    least: int = LEAST  #: what a flexible column keeps
    most: int | None = None  #: what it takes at most, even where there is room
    leaves: int = 0  #: goes when there is no room for all: the lowest first; 0 stays
    colours: Mapping[str, str] = MappingProxyType({})  #: cell to terminal code


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


def render(columns: Sequence[Column], width: int | None) -> Iterator[str]:
    """The heading and a line for each row, none wider than `width`; None: nothing is cut."""
    laid = [_Laid.of(column, bounded=width is not None) for column in columns]
    if width is not None:
        laid = _fitted(_with_room(laid, width), width)
    painted = [_painted(_sized(col), col.column.colours, col.cells) for col in laid]
    return map(str.rstrip, map(GAP.join, zip(*painted, strict=True)))


class _Laid(NamedTuple):
    """A column with harmless cells, and how wide it is to be."""

    column: Column
    cells: Sequence[str]  #: the heading first
    plain: bool  #: one character, one cell
    natural: int  #: as wide as the widest cell
    width: int

    @classmethod
    def of(cls, column: Column, *, bounded: bool) -> _Laid:
        cells = [column.heading, *_safe_cells(column.cells)]
        plain = "".join(cells).isascii()
        natural = max(map(len if plain else cell_width, cells))
        most = column.most if bounded else None
        return cls(column, cells, plain, natural, natural if most is None else min(natural, most))

    @property
    def least(self) -> int:
        return min(self.width, self.column.least) if self.column.flexible else self.width


def _safe_cells(cells: Sequence[str]) -> Sequence[str]:
    together = "".join(cells)
    if together.isascii() and together.isprintable():
        return cells
    return [one_line(cell) for cell in cells]


def _with_room(laid: Sequence[_Laid], width: int) -> list[_Laid]:
    """Without those columns that leave, one after the other, until the others have their least."""
    kept = list(laid)
    for going in sorted((col for col in laid if col.column.leaves), key=_leaves):
        if _total([col.least for col in kept]) <= width:
            break
        kept = [col for col in kept if col is not going]
    return kept


def _leaves(laid: _Laid) -> int:
    return laid.column.leaves


def _fitted(laid: Sequence[_Laid], width: int) -> list[_Laid]:
    widths = [col.width for col in laid]
    for _ in range(_total(widths) - width):
        widest = max(
            (at for at, col in enumerate(laid) if widths[at] > col.least),
            key=widths.__getitem__,
            default=None,
        )
        if widest is None:
            break
        widths[widest] -= 1
    # What is still too wide is cut where a line ends: at the right.
    fitted: list[_Laid] = []
    for col, size in zip(laid, widths, strict=True):
        room = width - _total([done.width for done in fitted]) - (len(GAP) if fitted else 0)
        if room > 0:
            fitted.append(col._replace(width=min(size, room)))
    return fitted


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1) if widths else 0


def _sized(laid: _Laid) -> list[str]:
    """Every cell cut or filled up to the column's width."""
    _, cells, plain, natural, width = laid
    if not plain:
        return [pad(cell, width) for cell in cells]
    if natural > width:
        # Plain text with an ellipsis still has one column a character.
        cells = [text if len(text) <= width else text[: width - 1] + ELLIPSIS for text in cells]
    return list(map(str.ljust, cells, repeat(width)))


def _painted(sized: list[str], colours: Mapping[str, str], cells: Sequence[str]) -> list[str]:
    if not colours:
        return sized
    return [
        f"{colours[cell]}{text}{_RESET}" if cell in colours else text
        for cell, text in zip(cells, sized, strict=True)
    ]
