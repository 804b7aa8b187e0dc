"""What a move in the past changed, for views that know nothing else of it."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """From one moment to another."""

    jobs: frozenset[str] = frozenset()
    lines: tuple[str, ...] = ()  #: jobs whose lines look different
    has_moved: bool = False  #: lines have come, gone or changed places
