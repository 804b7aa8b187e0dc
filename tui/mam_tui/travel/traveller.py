"""Where in the past the operator is, and how fast time goes there.

Numbers only: whoever holds one draws what there is to see, and says how much time has
passed. The past reaches from the first change to the moment at which it was read; what is
worth looking at ends with the last change.
"""

from __future__ import annotations

from mam_core.operations.replay import Past

SPEEDS = (1, 2, 5, 10, 30, 60)
#: A console that stood still (another program had the terminal) does not leap.
_LONGEST_TICK_SEC = 1.0


class Traveller:
    """One journey."""

    def __init__(self, past: Past, at: float | None, now: float) -> None:
        """`at` None: where something changed last."""
        span = past.span
        self._past = past
        self.begin, self.last = span if span is not None else (now, now)
        self._end = max(now, self.last)
        self.at = self.last if at is None else self._within(at)
        self.is_playing = False
        self._speed = 0

    @property
    def speed(self) -> int:
        return SPEEDS[self._speed]

    @property
    def end(self) -> float:
        """Of what a slider shows: a long time without a change is not worth its room."""
        return max(self.last, self.at)

    @property
    def share(self) -> float:
        """How much of that lies before this moment, 0 to 1."""
        whole = self.end - self.begin
        return (self.at - self.begin) / whole if whole > 0 else 1.0

    def go_to(self, moment: float) -> None:
        self.at = self._within(moment)

    def go(self, seconds: float) -> None:
        self.go_to(self.at + seconds)

    def step(self, by: int) -> None:
        """To the change before or after; those of one moment are one step."""
        before, after = self._past.beside(self.at)
        if by < 0:
            self.go_to(self.begin if before is None else before)
        else:
            self.go_to(self.at if after is None else after)

    def turn(self) -> None:
        """Let time go on, or stop it; after the last change there is nothing to be played."""
        self.is_playing = not self.is_playing and self.at < self.last

    def change_speed(self, by: int) -> None:
        self._speed = max(0, min(self._speed + by, len(SPEEDS) - 1))

    def pass_time(self, seconds: float) -> bool:
        """While it plays; True when this is another moment now."""
        if not self.is_playing:
            return False
        before = self.at
        self.go_to(min(self.last, self.at + min(seconds, _LONGEST_TICK_SEC) * self.speed))
        self.is_playing = self.at < self.last
        return self.at != before

    def crowds(self, count: int) -> list[int]:
        """How much happened in each of so many equal parts of the past."""
        whole = self.end - self.begin
        edges = [self.begin + whole * part / count for part in range(count)]
        return self._past.crowds([*edges, float("inf")])

    def _within(self, moment: float) -> float:
        return max(self.begin, min(moment, self._end))
