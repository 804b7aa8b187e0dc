"""Where each of several screens stands in a room: as square as can be, and nothing left over."""

from __future__ import annotations

from math import ceil, sqrt

from textual.geometry import Region


def columns_for(count: int) -> int:
    return max(1, ceil(sqrt(count)))


def places(count: int, width: int, height: int) -> list[Region]:
    """One after the other, by rows; between two columns there is room for a line.

    In a room that is too small some have no height or no width.
    """
    columns = columns_for(count)
    rows = ceil(count / columns)
    found = []
    for at in range(count):
        row, column = divmod(at, columns)
        left, right = column * width // columns, (column + 1) * width // columns
        top, bottom = row * height // rows, (row + 1) * height // rows
        gap = 1 if column < columns - 1 else 0
        found.append(Region(left, top, max(0, right - left - gap), bottom - top))
    return found
