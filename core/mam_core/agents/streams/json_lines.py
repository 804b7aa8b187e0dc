"""What the JSON formats share: a line is an object, or it is text from the side."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import tzinfo
from typing import Any

from mam_core.agents.calls import OpenCall, OpenCalls
from mam_core.agents.streams.base import Happening, Kind, Outcome
from mam_core.agents.streams.evidence import Evidence
from mam_core.agents.streams.lines import Line, Lines
from mam_core.agents.streams.values import unstyled

#: The longest line that is read. As Python objects a line takes up to 25 times its size.
MAX_LINE_BYTES = 4 * 1024 * 1024
#: The longest line of text; nobody reads more of it.
MAX_TEXT_BYTES = 16 * 1024


class JsonLines:
    """A parser that reads an object a line; a format says what an object means."""

    def __init__(self, now: Callable[[], float], local: tzinfo | None = None) -> None:
        self.evidence = Evidence(now, local)
        self.calls = OpenCalls()
        self._lines = Lines(MAX_LINE_BYTES)
        self._side = Lines(MAX_TEXT_BYTES)
        self._closed = False

    @abstractmethod
    def read(self, entry: Mapping[str, Any]) -> Iterable[Happening]:
        """What one object says."""

    def hear(self, line: str) -> Iterable[Happening]:
        """What a line of text says that is none of the format's."""
        return self.evidence.say(line)

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        return self.calls.all()

    def feed(self, data: bytes, *, aside: bool = False) -> list[Happening]:
        found: list[Happening] = []
        if aside:
            for line in self._side.feed(data):
                found += self.hear(unstyled(line.text()))
        else:
            for line in self._lines.feed(data):
                found += self._take(line)
        return found

    def close(self) -> list[Happening]:
        if self._closed:
            return []
        self._closed = True
        found: list[Happening] = []
        if line := self._lines.rest():
            found += self._take(line)
        if line := self._side.rest():
            found += self.hear(unstyled(line.text()))
        return found

    def end(self, exit_code: int | None, signal: int | None) -> Outcome:
        self.close()
        return self.evidence.outcome(exit_code, signal)

    def _take(self, line: Line) -> Iterable[Happening]:
        if line.lost:
            return [Happening(Kind.LOG, f"a line of {line.size:,} bytes was left out")]
        if line.data.lstrip()[:1] == b"{":
            try:
                entry = json.loads(line.text())  # a torn character costs one character
            except (ValueError, RecursionError):
                entry = None
            if isinstance(entry, dict):
                return self.read(entry)
        return self.hear(unstyled(Line(line.data[:MAX_TEXT_BYTES]).text()))
