"""Which numbers of a row have come: as ranges, since mostly all of them have.

A job that told a million events in order costs two integers. A stranger who
sends wild numbers can make holes, but only so many: then the lowest hole is
given up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

MAX_RANGES = 64


class Numbers:
    """A set of whole numbers, kept as sorted ranges without touching neighbours."""

    __slots__ = ("_highs", "_lows")

    def __init__(self) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._lows, number) - 1
        return place >= 0 and number <= self._highs[place]

    @property
    def highest(self) -> int:
        return self._highs[-1] if self._highs else 0

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return list(zip(self._lows, self._highs, strict=True))

    def add(self, number: int) -> bool:
        """False when it was there already."""
        lows, highs = self._lows, self._highs
        after = bisect_right(lows, number)
        before = after - 1
        if before >= 0 and number <= highs[before]:
            return False
        joins_left = before >= 0 and highs[before] == number - 1
        joins_right = after < len(lows) and lows[after] == number + 1
        if joins_left and joins_right:
            highs[before] = highs.pop(after)
            del lows[after]
        elif joins_left:
            highs[before] = number
        elif joins_right:
            lows[after] = number
        else:
            lows.insert(after, number)
            highs.insert(after, number)
            if len(lows) > MAX_RANGES:
                del highs[0], lows[1]
        return True

    def cut(self, last: int) -> None:
        """Forget everything above `last`."""
        keep = bisect_right(self._lows, last)
        del self._lows[keep:], self._highs[keep:]
        if self._highs:
            self._highs[-1] = min(self._highs[-1], last)

    def gaps(self, after: int, upto: int) -> Iterator[tuple[int, int]]:
        """The ranges of numbers in ``after < n <= upto`` that are not here."""
        low = after + 1
        for first, last in zip(self._lows, self._highs, strict=True):
            if low > upto:
                return
            if first > low:
                yield low, min(first - 1, upto)
            low = max(low, last + 1)
        if low <= upto:
            yield low, upto
