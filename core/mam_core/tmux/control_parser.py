"""What ``tmux -C`` prints, cut into replies and notices. Pure: bytes in, records out.

A reply stands between ``%begin`` and ``%end`` (or ``%error``) with the same time, number and
flags; whatever stands between them is the reply's, however much it looks like
something else: pane text may hold any line. tmux promises no notice within a reply. Reads
may be cut anywhere. Memory is bounded: an endless line or reply is an error.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LINE_LIMIT = 1 << 20
REPLY_LIMIT = 32 << 20

_GUARD = re.compile(rb"%(begin|end|error) (\d{1,20} (\d{1,20}) (\d{1,3}))", re.ASCII)
_OCTAL = re.compile(rb"\\([0-7]{3})")


class Garbled(Exception):
    """The stream is not what tmux prints; nothing after this can be believed."""


class Reply(NamedTuple):
    """The answer to one command."""

    number: int
    is_ours: bool  #: to a command of this client, not of tmux itself
    is_error: bool
    lines: tuple[bytes, ...]


class Notice(NamedTuple):
    """Something that happened: ``%exit``, ``%sessions-changed``, ``%output %1 …`` (unescaped)."""

    name: str
    words: bytes


class ControlParser:
    """Feed it what was read, in any pieces; it gives what is complete."""

    def __init__(self, line_limit: int = LINE_LIMIT, reply_limit: int = REPLY_LIMIT) -> None:
        self._line_limit = line_limit
        self._reply_limit = reply_limit
        self._rest = bytearray()
        self._guard: bytes | None = None  #: of the reply that has begun
        self._lines: list[bytes] = []
        self._size = 0

    @property
    def held(self) -> int:
        """How many bytes wait for the rest of their line or reply."""
        return len(self._rest) + self._size

    def feed(self, data: bytes) -> list[Reply | Notice]:
        """Raises Garbled, and then is of no more use."""
        found: list[Reply | Notice] = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            piece = data[start:end]
            start = end + 1
            if self._rest:
                self._rest += piece
                piece = bytes(self._rest)
                self._rest.clear()
            if len(piece) > self._line_limit:
                raise Garbled("a line is too long")
            if (made := self._line(piece)) is not None:
                found.append(made)
        self._rest += data[start:]
        if len(self._rest) > self._line_limit:
            raise Garbled("a line is too long")
        return found

    def _line(self, line: bytes) -> Reply | Notice | None:
        if self._guard is None:
            return self._between(line)
        guard = _GUARD.fullmatch(line) if line[:1] == b"%" else None
        if guard is not None and guard[2] == self._guard and guard[1] != b"begin":
            return self._close(guard)
        self._size += len(line) + 1
        if self._size > self._reply_limit:
            raise Garbled("a reply is too long")
        self._lines.append(line)
        return None

    def _between(self, line: bytes) -> Notice | None:
        if line[:1] != b"%":
            raise Garbled("a line outside of a reply")
        name, _, words = line[1:].partition(b" ")
        if name in (b"begin", b"end", b"error"):
            guard = _GUARD.fullmatch(line)
            if guard is None or name != b"begin":
                raise Garbled("an end without a begin, or a begin without its numbers")
            self._guard = guard[2]
            return None
        if name == b"output":
            words = unescape(words)
        return Notice(name.decode("ascii", "replace"), words)

    def _close(self, guard: re.Match[bytes]) -> Reply:
        lines = tuple(self._lines)
        self._guard = None
        self._lines.clear()
        self._size = 0
        is_ours = bool(int(guard[4]) & 1)
        return Reply(int(guard[3]), is_ours, guard[1] == b"error", lines)


def unescape(words: bytes) -> bytes:
    """The bytes of an ``%output``, in which tmux writes controls and ``\\`` as ``\\ooo``."""
    return _OCTAL.sub(lambda found: bytes([int(found[1], 8) & 0xFF]), words)
