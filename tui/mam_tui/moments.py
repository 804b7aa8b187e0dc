"""Times as a board shows them: how long ago, how long it took. Read once, since there are many."""

from __future__ import annotations

import time
from functools import lru_cache

from mam_core.clock import parse_stamp


@lru_cache(maxsize=4096)
def seconds(stamp: str | None) -> float | None:
    """A time stamp of a record, in seconds since 1970; None for none or for another tool's."""
    if not stamp:
        return None
    try:
        return parse_stamp(stamp)
    except ValueError:
        return None


def span(length: float | None) -> str:
    """At most five characters: ``42s``, ``3m05``, ``2h10``, ``5d``."""
    if length is None:
        return ""
    whole = max(0, int(length))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}"
    return f"{whole // 86400}d"


def whole_minutes(length: float) -> str:
    """As `span`, for what is not looked at every second: ``<1m``, ``3m``, ``2h10``, ``5d``."""
    minutes = int(length) // 60
    return span(length) if minutes >= 60 else f"{minutes}m" if minutes >= 1 else "<1m"


def count(number: int | None) -> str:
    """``950``, ``12.3k``, ``4.5M``."""
    if number is None:
        return ""
    if number < 1000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1000:.1f}k"
    return f"{number / 1_000_000:.1f}M"


def money(amount: float | None) -> str:
    return "" if amount is None else f"${amount:.2f}"


def time_of_day(at: float) -> str:
    """On the wall of whoever looks: ``09:30:02``."""
    return _struck(at, "%H:%M:%S")


def day_and_time(at: float) -> str:
    return _struck(at, "%Y-%m-%d %H:%M:%S")


def _struck(at: float, form: str) -> str:
    try:
        return time.strftime(form, time.localtime(at))
    except (OverflowError, ValueError, OSError):  # another tool's idea of a time
        return "?"


def mebibytes(number: int) -> str:
    """As memory is spoken of: ``950M``, ``1.5G``."""
    whole = number >> 20
    return f"{whole}M" if whole < 1000 else f"{number / 2**30:.1f}G"


def size(number: int | None) -> str:
    """``950 B``, ``12.3 kB``, ``4.5 MB``."""
    if number is None:
        return ""
    if number < 1000:
        return f"{number} B"
    if number < 1_000_000:
        return f"{number / 1000:.1f} kB"
    return f"{number / 1_000_000:.1f} MB"
