"""Amounts of memory as people say them."""

from __future__ import annotations

_STEP = 1024


def size(count: int | None) -> str:
    """``310M``, ``1.2G``; a dash for what is not known."""
    if count is None:
        return "-"
    left = float(count)
    for unit in "BKM":
        if left < _STEP:
            return f"{left:.0f}{unit}"
        left /= _STEP
    return f"{left:.1f}G"
