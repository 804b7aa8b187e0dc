"""What a feed asks of whoever sees records change: a folder's watch, or a database's.

A watch is a hint that comes soon. Whatever it misses is found by the feed's own looks.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Sight(NamedTuple):
    """The records can be watched, or not any more."""

    up: bool
    text: str
    at: float


class Changes(NamedTuple):
    """What has happened since the last look."""

    stems: set[str]  #: jobs, by what their records are named
    sights: list[Sight]
    in_doubt: bool  #: something may have been missed: look at everything


class Watch(Protocol):
    """Sees records change from `start` to `close`; wakes whoever made it when there is news."""

    @property
    def up(self) -> bool | None:
        """None before the first look."""

    @property
    def since(self) -> float:
        """For how long, by `time.monotonic()`."""

    @property
    def text(self) -> str:
        """In words."""

    def start(self) -> None:
        """Returns when every later change will be seen, or it is known that none can be."""

    def drain(self) -> Changes: ...

    def close(self) -> None: ...
