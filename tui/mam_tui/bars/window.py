"""The stretch of time that is seen: it follows the present, or stands where it was put."""

from __future__ import annotations

from math import ceil

from mam_tui.widgets.time_axis import SPANS

#: While it follows, the present stands so far from its end, and it moves by steps so wide: most
#: seconds it stands still, and nothing has to be drawn.
_AHEAD = 1 / 40
_STEPS = 40
_USUAL = 3600.0
#: What is shown at first is never nearer or farther than this.
_FIRST_LEAST = 120.0
_FIRST_MOST = 12 * 3600.0


class TimeWindow:
    """From `begin`, for `span` seconds."""

    def __init__(self) -> None:
        self.span = _USUAL
        self.begin = 0.0
        self.follows = True
        self.is_chosen = False  #: by the operator: then it is not fitted any more

    def fit(self, reach: tuple[float, float] | None, now: float) -> None:
        """As near as everything is seen, within reason; what ended long ago is gone to."""
        if self.is_chosen:
            return
        if reach is None:
            self._follow(now)
            return
        first, last = reach[0], min(reach[1], now)
        is_long_ago = now - last > _FIRST_MOST / 2
        wanted = ((last if is_long_ago else now) - first) * 1.1
        self.span = max(_FIRST_LEAST, min(_FIRST_MOST, ceil(wanted / _FIRST_LEAST) * _FIRST_LEAST))
        if is_long_ago:
            self.follows = False
            self.begin = last - self.span * 0.9
        else:
            self._follow(now)

    def follow(self, now: float) -> None:
        self.is_chosen = True
        self._follow(now)

    def _follow(self, now: float) -> None:
        self.follows = True
        self.move_on(now)

    def move_on(self, now: float) -> bool:
        """It is this time now; True when another stretch is seen."""
        if not self.follows:
            return False
        step = self.span / _STEPS
        begin = ceil((now + self.span * _AHEAD) / step) * step - self.span
        moved, self.begin = begin != self.begin, begin
        return moved

    def pan(self, share: float) -> None:
        """By so much of what is seen; from then on it stands still."""
        self.follows, self.is_chosen = False, True
        self.begin += self.span * share

    def zoom(self, by: int, around: float | None = None) -> None:
        """One step nearer (positive) or farther; `around` stays where it is."""
        nearer = [one for one in SPANS if one < self.span]
        farther = [one for one in SPANS if one > self.span]
        if not (nearer if by > 0 else farther):
            return
        self.is_chosen = True
        middle = self.begin + self.span / 2 if around is None else around
        share = (middle - self.begin) / self.span
        self.span = nearer[-1] if by > 0 else farther[0]
        self.begin = middle - self.span * share
