"""Plain text, from any command: a line is a text, and the exit code is all there is to judge by.

A usage limit explains a failure only near its end: a script that speaks of
limits, or tests one, has met none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from datetime import tzinfo

from mam_core.agents.calls import OpenCall
from mam_core.agents.quota import Limit
from mam_core.agents.streams.base import Happening, Kind, Outcome
from mam_core.agents.streams.evidence import Evidence
from mam_core.agents.streams.lines import Line, Lines
from mam_core.agents.streams.values import unstyled

MAX_LINE_BYTES = 16 * 1024
#: A limit counts if it was told within so many lines of the end.
_LAST_LINES = 20
#: Of what comes at once, so many lines are read; a build prints thousands in a moment.
READ_AT_ONCE = 40


class PlainText:
    """Reads lines; both streams are alike."""

    #: Every line may change what the next one means; else only the last of many are read.
    reads_all = False
    open_calls: tuple[OpenCall, ...] = ()  #: text does not tell

    def __init__(self, now: Callable[[], float], local: tzinfo | None = None) -> None:
        self.evidence = Evidence(now, local)
        self._channels = (Lines(MAX_LINE_BYTES), Lines(MAX_LINE_BYTES))
        self._limits: deque[Limit | None] = deque(maxlen=_LAST_LINES)
        self._closed = False

    def feed(self, data: bytes, *, aside: bool = False) -> list[Happening]:
        found: list[Happening] = []
        channel = self._channels[aside]
        if not self.reads_all:
            rest, many = channel.leave_out(data, READ_AT_ONCE)
            if many:
                self.evidence.skim(data[: len(data) - len(rest)])
                found.append(Happening(Kind.SKIPPED, "", {"lines": many}))
            data = rest
        for line in channel.feed(data):
            found += self.hear(_shown(line))
        return found

    def close(self) -> list[Happening]:
        if self._closed:
            return []
        self._closed = True
        found: list[Happening] = []
        for channel in self._channels:
            if line := channel.rest():
                found += self.hear(_shown(line))
        return found

    def hear(self, line: str) -> Iterable[Happening]:
        """What one line says."""
        if not line.strip():
            return ()
        self.evidence.note(line)
        limit = self.evidence.limit_in(line)
        self._limits.append(limit)
        if limit is not None:
            return (Happening(Kind.QUOTA, line, {"until": limit.until, "sure": False}),)
        return (Happening(Kind.TEXT, line),)

    def end(self, exit_code: int | None, signal: int | None) -> Outcome:
        self.close()
        if exit_code == 0 and not signal:
            self.evidence.done, self.evidence.answer = True, "exit 0"
        else:
            self.evidence.done = False
            self.evidence.limit = next(filter(None, reversed(self._limits)), None)
        return self.evidence.outcome(exit_code, signal)


def _shown(line: Line) -> str:
    """A line as a terminal would leave it: what stands after the last return of the carriage."""
    shown = unstyled(line.text()).rpartition("\r")[2]
    return f"{shown}… ({line.size:,} bytes)" if line.lost else shown
