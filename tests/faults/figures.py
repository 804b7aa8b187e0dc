"""What a fault run says at its end: a line of one table, and the violations if there are any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_MOST = 40


def line(name: str, counts: Mapping[str, int]) -> str:
    """``kill -9 at random       60 kills ·  31 in the lock · 0 violations``"""
    told = " · ".join(f"{count:5,} {what}" for what, count in counts.items())
    return f"{name:<34}{told}"


def listed(violations: Sequence[str]) -> str:
    """One a line; a fault that breaks everything must not bury its own beginning."""
    more = len(violations) - _MOST
    rest = [f"… and {more} more"] if more > 0 else []
    return "\n".join(["", *violations[:_MOST], *rest])
