"""Bytes cut into lines, with a bound on what one line may cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Line(NamedTuple):
    """A line without its end; `lost` counts the bytes that were too many."""

    data: bytes
    lost: int = 0

    @property
    def size(self) -> int:
        return len(self.data) + self.lost

    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


class Lines:
    """Cuts at newlines, however the bytes arrive; of an endless line it keeps the beginning."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._lost = 0

    def feed(self, data: bytes) -> Iterator[Line]:
        """The lines that these bytes finish. To be used up before the next call."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            if self._kept or self._lost or end - start > self._limit:
                self._keep(data[start:end])
                yield self._take()
            else:
                yield Line(data[start:end].removesuffix(b"\r"))
            start = end + 1
        self._keep(data[start:])

    def leave_out(self, data: bytes, most: int) -> tuple[bytes, int]:
        """Of data with more than `most` lines, the end that is to be fed, and how many it lacks."""
        many = data.count(b"\n") - most
        if many <= 0:
            return data, 0
        end = len(data)
        for _ in range(most + 1):
            end = data.rfind(b"\n", 0, end)
        self._kept, self._lost = bytearray(), 0
        return data[end + 1 :], many

    def rest(self) -> Line | None:
        """What stands after the last newline."""
        return self._take() if self._kept or self._lost else None

    def _keep(self, piece: bytes) -> None:
        room = self._limit - len(self._kept)
        self._kept += piece[:room]
        self._lost += max(0, len(piece) - room)

    def _take(self) -> Line:
        line = Line(bytes(self._kept).removesuffix(b"\r"), self._lost)
        self._kept = bytearray()
        self._lost = 0
        return line
