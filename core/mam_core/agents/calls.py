"""The open tool calls of an agent: begun, and not reported to have ended.

While one is, an agent may be silent for good reason: a test suite, a build. Calls run
side by side, and those of a sub-agent lie within the call that started it, so that one
whose end is never reported ends with that call, and with the turn at the latest.
"""

from __future__ import annotations

from typing import NamedTuple

from mam_core.agents.streams.discretion import short

#: More than this at once is not plausible: the oldest is taken to have ended.
MAX_OPEN = 256
_NAME_CHARS = 80


class OpenCall(NamedTuple):
    """One call that runs. Its words are foreign text."""

    call_id: str
    tool: str
    words: str = ""  #: what it is about
    within: str = ""  #: the call, or the sub-agent, that it is part of
    writes: str = ""  #: the file that it will have written

    @property
    def name(self) -> str:
        """Short enough for an event: `Bash pytest -q`."""
        return short(" ".join(filter(None, (self.tool, self.words))), _NAME_CHARS)


class OpenCalls:
    """Of one agent."""

    def __init__(self) -> None:
        self._open: dict[str, OpenCall] = {}

    def all(self) -> tuple[OpenCall, ...]:
        """The oldest first."""
        return tuple(self._open.values())

    def begin(self, call: OpenCall) -> None:
        if len(self._open) >= MAX_OPEN:
            self._open.pop(next(iter(self._open)))
        self._open[call.call_id] = call

    def end(self, call_id: str) -> OpenCall | None:
        """With all that ran within it; None for one that is not known."""
        found = self._open.pop(call_id, None)
        if call_id:
            self.leave(call_id)
        return found

    def leave(self, within: str) -> None:
        """A sub-agent has ended, and with it whatever it called."""
        ended = [within]
        while ended:
            outer = ended.pop()
            inner = [call.call_id for call in self.all() if call.within == outer]
            for call_id in inner:
                del self._open[call_id]
            ended += filter(None, inner)

    def forget(self) -> None:
        """Close all: a turn ends or begins, and nothing of an earlier one still runs."""
        self._open.clear()
