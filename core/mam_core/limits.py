"""Which limit ends a running attempt next, and whether its shown state is only a guess.

Light, since the console's first frame is drawn with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

#: Without an event for so long, work may have stopped.
OLD_SEC = 120.0
#: A question stays open and a rest a rest; what goes on must be seen to.
FADING = frozenset({"starting", "working"})
#: The channels that only look at an agent from outside.
WEAK = frozenset({"title", "screen", "silence"})
#: Later than any limit can end: a stranger's number may be infinite.
_LATEST = 1e12


class Limit(StrEnum):
    """The clocks of an attempt."""

    WALL = "wall"
    IDLE = "idle"
    TOOL = "tool"  #: silent while a tool call is open
    WAITING = "waiting"  #: for a person: the idle clock is paused, the wall clock goes on

    @property
    def timeout(self) -> str:
        """What ends an attempt by it."""
        return {Limit.IDLE: "idle timeout", Limit.TOOL: "tool timeout"}.get(self, "timeout")


class NearLimit(NamedTuple):
    """The one that comes first, and when. Its words are the agent's: foreign text."""

    limit: Limit
    ends_at: float  #: seconds since 1970
    words: str = ""  #: the tool call

    def sentence(self, now: float) -> str:
        from mam_core.table import age

        left = age(max(0.0, self.ends_at - now))
        ends = f"ends in {left} ({self.limit.timeout})"
        if self.limit is Limit.WAITING:
            return f"the idle clock is paused while it waits; {ends}"
        return f"tool call {self.words}; {ends}" if self.words else ends

    def to_dict(self, now: float) -> dict[str, Any]:
        """As lists and `why` show it."""
        left = round(max(0.0, self.ends_at - now), 3)
        return {**self._asdict(), "limit": str(self.limit), "left_sec": left}

    def to_event(self) -> dict[str, Any]:
        return {**self._asdict(), "limit": str(self.limit)}

    @classmethod
    def from_event(cls, data: object) -> NearLimit | None:
        """From an event's data, which anybody may have written; None when it is none."""
        if not isinstance(data, Mapping):
            return None
        try:
            ends_at = float(data["ends_at"])
            if not 0 < ends_at < _LATEST:  # nor NaN
                return None
            return cls(Limit(data["limit"]), ends_at, str(data.get("words") or ""))
        except (KeyError, OverflowError, TypeError, ValueError):
            return None


def is_doubtful(word: str, channel: str, limit: str, seen_at: float, now: float) -> bool:
    """Whether a shown state is a guess: seen from outside only, or with no event for long.

    `word` is the state's as it is shown; `seen_at` is 0 where there was no event. While its wall
    clock is what ends it next, its worker sees it live, whatever little it tells.
    """
    if word not in FADING:
        return False
    if channel in WEAK:
        return True
    return limit != Limit.WALL and seen_at > 0 and now - seen_at >= OLD_SEC
