"""Jobs for boards: summaries that look like those of a real registry."""

from __future__ import annotations

from typing import Any

from mam_core.clock import stamp
from mam_core.records import Status
from mam_core.summaries import Summary

#: The console's clock stands still here.
NOW = 1_800_000_000.0


def summary(number: int = 1, status: Status = Status.PENDING, **changes: Any) -> Summary:
    """A job as a list has it; running ones began a minute ago, ended ones half a minute ago."""
    began = status is not Status.PENDING
    base = Summary(
        f"job{number:04}",
        status,
        "claude-code",
        "tmux:claude",
        None,
        0,
        number,
        1 if began else 0,
        stamp(NOW - 120),
        stamp(NOW - 30),
        stamp(NOW - 60) if began else None,
        stamp(NOW - 30) if status.is_ended else None,
        None,
        None,
        0,
        f"Write test number {number}",
    )
    return base._replace(**changes)
