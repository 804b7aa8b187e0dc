"""What is known of an agent's state, and from whom: a sign, as one channel gives it.

The agent's own channels and the screen say different things at different times;
which of them is believed is decided elsewhere (`states`). Here stands only what was
seen, by which rule and when, so that "why is this shown as waiting?" has an answer,
now and later.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple


class AgentState(StrEnum):
    """What an agent is doing."""

    STARTING = "starting"
    WORKING = "working"
    WAITING = "waiting"  #: for a person: a permission, a question, a dialog
    IDLE = "idle"  #: its turn is over, or none has begun
    ENDED = "ended"
    UNKNOWN = "unknown"


class Channel(StrEnum):
    """Who says so; the first is believed most."""

    PROCESS = "process"  #: tmux and the supervisor: dead or alive, and the exit code
    STREAM = "stream"  #: the agent's own JSON
    HOOK = "hook"
    STATUS = "status file"
    OSC = "osc"  #: a state report of the agent to its terminal
    TITLE = "title"
    SCREEN = "screen"
    SILENCE = "silence"  #: a hint, and never a reason to end anything

    @property
    def rank(self) -> int:
        return list(Channel).index(self)


class Sign(NamedTuple):
    """One thing that was seen. `words` are the agent's: foreign text."""

    state: AgentState
    channel: Channel
    rule: str  #: what was matched: a hook's name, a screen rule with its version
    at: float  #: seconds since 1970
    words: str = ""  #: the question, the error, the line that was matched
    turn_over: bool = False  #: a turn has ended, well or not
    failed: bool = False  #: it ended with an error

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "state": str(self.state), "channel": str(self.channel)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Sign | None:
        """From an event's data, which anybody may have written; None when it is no sign."""
        try:
            return cls(
                AgentState(data["state"]),
                Channel(data["channel"]),
                str(data["rule"]),
                float(data["at"]),
                str(data.get("words") or ""),
                data.get("turn_over") is True,
                data.get("failed") is True,
            )
        except (KeyError, TypeError, ValueError):
            return None
