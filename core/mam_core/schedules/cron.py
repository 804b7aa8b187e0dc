"""The five fields of cron, and the moments that they mean.

A small parser of our own: the language is five sets of numbers, and what is hard about it, the
days on which clocks change, has to be decided here anyway. As Debian's cron has it:

- a time that a change of clocks skips comes at the change, counted on by the old clock;
- a time that comes twice is meant once, the first time;
- unless the hour is ``*`` or ``*/n``: such a schedule counts what passes, so that it skips nothing
  and pauses for nobody.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(\*|[a-z0-9]+(?:-[a-z0-9]+)?)(?:/(\d+))?")
#: The 29th of February comes after eight years at the latest.
_REACH_DAYS = 366 * 9
#: Where most hosts keep their zones, and how such a file begins.
_ZONES = "/usr/share/zoneinfo/"
_MAGIC = b"TZif"

Zone = datetime.tzinfo | None  #: None is the clock of this host


class _Field(NamedTuple):
    what: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    first: int = 0  #: the number of the first name


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day", 1, 31),
    _Field("month", 1, 12, _MONTHS, 1),
    _Field("weekday", 0, 7, _DAYS, 0),
)


class Cron(NamedTuple):
    """When, by a clock on a wall."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  #: 0 is Sunday
    by_any_day: bool  #: day and weekday are both given: either will do
    counts_hours: bool  #: the hour is a star: what passes is counted, whatever clocks show

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Raises ValueError with a sentence that names the field."""
        words = _NAMED.get(text.strip().lower(), text).lower().split()
        if len(words) != len(_FIELDS):
            raise ValueError(f"cron has five fields, minute hour day month weekday, not {text!r}")
        minutes, hours, days, months, weekdays = (
            _numbers(word, field) for word, field in zip(words, _FIELDS, strict=True)
        )
        found = cls(
            tuple(sorted(minutes)),
            tuple(sorted(hours)),
            days,
            months,
            frozenset(day % 7 for day in weekdays),
            not words[2].startswith("*") and not words[4].startswith("*"),
            words[1].startswith("*"),
        )
        if found.after(0.0, datetime.UTC) is None:
            raise ValueError(f"{text!r} never comes: no month has such a day")
        return found

    def after(self, moment: float, zone: Zone = None) -> float | None:
        """The first moment later than `moment`; None when there is none."""
        return next(self.moments(moment, zone), None)

    def moments(self, since: float, zone: Zone = None) -> Iterator[float]:
        """Those later than `since`, in order, each once; a day costs about a millisecond."""
        last = since
        # A day earlier than it seems: what a change of clocks moves may come from the day before.
        start = datetime.datetime.fromtimestamp(since, zone).date().toordinal() - 1
        for ordinal in range(start, min(start + _REACH_DAYS, datetime.date.max.toordinal())):
            date = datetime.date.fromordinal(ordinal)
            if self._is_day(date):
                for moment in sorted(self._moments(date, zone)):
                    if moment > last:
                        last = moment
                        yield moment

    def _is_day(self, date: datetime.date) -> bool:
        if date.month not in self.months:
            return False
        by_day, by_weekday = date.day in self.days, date.isoweekday() % 7 in self.weekdays
        return by_day or by_weekday if self.by_any_day else by_day and by_weekday

    def _moments(self, date: datetime.date, zone: Zone) -> Iterator[float]:
        for hour in self.hours:
            for minute in self.minutes:
                shown = datetime.datetime(
                    date.year, date.month, date.day, hour, minute, tzinfo=zone
                )
                first = shown.timestamp()
                if not self.counts_hours:
                    yield first  # of a time that is skipped: as the old clock would have had it
                    continue
                for moment in {first, shown.replace(fold=1).timestamp()}:
                    if _shown_at(moment, zone) == (hour, minute):
                        yield moment


def _shown_at(moment: float, zone: Zone) -> tuple[int, int]:
    there = datetime.datetime.fromtimestamp(moment, zone)
    return there.hour, there.minute


def _numbers(word: str, field: _Field) -> frozenset[int]:
    found: set[int] = set()
    top = 6 if field.names is _DAYS else field.high  # Sunday is 0, and 7 only where that is said
    for part in word.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no {field.what}")
        span, step_text = match[1], match[2]
        step = int(step_text) if step_text else 1
        if span == "*":
            low, high = field.low, top
        else:
            first, _, last = span.partition("-")
            low = _number(first, field)
            high = _number(last, field) if last else (top if step_text else low)
        if not 0 < step <= field.high or low > high:
            raise ValueError(f"{part!r} is no {field.what}")
        found.update(range(low, high + 1, step))
    return frozenset(found)


def _number(word: str, field: _Field) -> int:
    if word in field.names:
        return field.names.index(word) + field.first
    if not word.isdecimal() or not field.low <= int(word) <= field.high:
        raise ValueError(f"{word!r} is no {field.what}: it is {field.low} to {field.high}")
    return int(word)


def check_zone(name: str) -> None:
    """Raises ValueError as `zone_named` would, mostly without its price: every command reads the
    settings, and few of them want to know what time it is elsewhere."""
    path = os.path.join(_ZONES, name)
    if os.path.normpath(path) == path and path.startswith(_ZONES):
        with suppress(OSError, ValueError), open(path, "rb") as file:
            if file.read(len(_MAGIC)) == _MAGIC:
                return
    zone_named(name)


def zone_named(name: str) -> Zone:
    """Raises ValueError for a zone that this host does not know."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # unknown, no zone, or a path
        raise ValueError(f"this host knows no time zone {name!r}") from None
