"""Usage limits, as agents word them: is this message one, and when is it over?

No agent tells it by its exit code, and each has sentences of its own. A job that
met a limit has not failed: it waits until the moment found here. Where the
message names none, or one that cannot be right, the answer is None, and whoever
waits decides how long.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

#: A clock time that has just passed is this one, not tomorrow's: answers take a moment to arrive.
_JUST_PASSED_SEC = 30 * 60
#: A monthly plan is the longest that a limit lasts.
_FARTHEST_SEC = 32 * 24 * 3600
#: Sentences are short; a longer text is somebody's work that speaks of limits.
_LOOKED_AT_CHARS = 1000


class Limit(NamedTuple):
    """A limit that was met."""

    text: str
    until: float | None  #: seconds since the epoch, where the message tells


_LIMIT_WORDS = re.compile(
    r"""
      usage[ _]limit[ _](?:has[ ]been[ ])?reached
    | \b(?:hit|reached|exceed(?:ed)?)\ your\ (?:[\w'-]+\ ){0,3}limit\b
    | \breached\ the\ quota\ limit\b
    | \b(?:5-hour|five-hour|hourly|session|daily|weekly|monthly|opus|sonnet|usage|rate)
      \ limit\ (?:reached|exceeded|hit)\b
    | \bexceeded\ your\ current\ quota\b | \bquota\ exceeded\b | \binsufficient_quota\b
    | \bexhausted\ your\ (?:\w+\ ){0,2}(?:quota|capacity)\b | \bRESOURCE_EXHAUSTED\b
    | \bout\ of\ credits\b | \bcredit\ balance\ is\ too\ low\b
    | \b429\ too\ many\ requests\b | \brejected\ \(429\) | \brate[ ]limited\ you\b
    | \brate_limit_(?:error|exceeded)\b | \bRateLimitError\b
    """,
    re.VERBOSE | re.IGNORECASE,
)

_SOON = r"\b(?:resets?|resetting|again|retry|wait|until|available|resumes?)\b"
_EPOCH = re.compile(
    r"(?:limit reached\||resets?_?at[\"']?\s*[:=]\s*[\"']?)(\d{10}|\d{13})(?!\d)", re.IGNORECASE
)
_SECONDS = re.compile(
    r"(?:resets?_in_seconds|reset-after-seconds|retry[-_]after)[\"']?\s*[:=]\s*[\"']?"
    r"(\d{1,9}(?:\.\d+)?)",
    re.IGNORECASE,
)
_ISO = re.compile(
    _SOON + r"\D{0,40}?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?"
    r"(?:Z|[+-]\d\d:?\d\d)?)",
    re.IGNORECASE,
)
_UNIT = r"(?:days?|d|hours?|hrs?|h|milliseconds?|ms|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])"
_AMOUNT = rf"\d{{1,6}}(?:\.\d{{1,6}})?\s*{_UNIT}"
_DURATION = re.compile(
    rf"(?:{_SOON}[^.\n\d]{{0,30}}?\b(?:in|after)|resets?)\s+"
    rf"({_AMOUNT}(?:[\s,]*(?:and\s+)?{_AMOUNT}){{0,5}})",
    re.IGNORECASE,
)
_PART = re.compile(rf"(\d+(?:\.\d+)?)\s*({_UNIT})", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK = re.compile(
    rf"""
    {_SOON}\s*:?\s*(?:(?:at|on|by)\s+)?
    (?:(?P<weekday>{"|".join(_DAYS)})[a-z]*,?\s+(?:at\s+)?)?
    (?:(?P<month>{"|".join(_MONTHS)})[a-z]*\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?
       (?:,?\s+(?P<year>\d{{4}}))?,?\s+(?:at\s+)?)?
    (?P<hour>\d{{1,2}})(?::(?P<minute>\d\d))?(?::\d\d)?\s*(?P<half>[ap]\.?m\b)?
    (?:\s*\((?P<zone>[A-Za-z][\w+/-]{{1,40}})\)|\.?\s+(?P<bare>[A-Z]{{3,4}})\b)?
    """,
    re.VERBOSE | re.IGNORECASE,
)
#: What messages write without naming a place.
_ZONE_HOURS = {
    "UTC": 0, "GMT": 0, "PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "CST": -6, "CDT": -5,
    "EST": -5, "EDT": -4, "BST": 1, "CET": 1, "CEST": 2,
}  # fmt: skip
_UNIT_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def find_limit(text: str, now: float, local: tzinfo | None = None) -> Limit | None:
    """The limit that a message speaks of; None for a message of another kind.

    `local` is the zone of a time that names none; None means this machine's.
    """
    text = text[:_LOOKED_AT_CHARS]
    if not _may_be_one(text.lower()):
        return None
    text = _plain(text)
    if _LIMIT_WORDS.search(text) is None:
        return None
    return Limit(text, find_reset(text, now, local))


def find_reset(text: str, now: float, local: tzinfo | None = None) -> float | None:
    """When a message says that things go on, as seconds since the epoch."""
    try:
        return _reset(_plain(text[:_LOOKED_AT_CHARS]), now, local)
    except (ValueError, OverflowError):  # figures that no calendar has
        return None


def _reset(text: str, now: float, local: tzinfo | None) -> float | None:
    if match := _EPOCH.search(text):
        return plausible(int(match[1]), now)
    if match := _SECONDS.search(text):
        return plausible(now + float(match[1]), now)
    if match := _ISO.search(text):
        return plausible(_iso(match[1], local), now)
    if match := _DURATION.search(text):
        return plausible(now + _duration(match[1]), now)
    for match in _CLOCK.finditer(text):
        if match["minute"] or match["half"]:
            return plausible(_clock(match, now, local), now)
    return None


def plausible(moment: float | None, now: float) -> float | None:
    """The moment, if a limit can end then; milliseconds are taken for what they are."""
    if moment is None:
        return None
    if moment > 1e11:
        moment /= 1000
    return moment if now - 2 * _JUST_PASSED_SEC <= moment <= now + _FARTHEST_SEC else None


def _may_be_one(text: str) -> bool:
    """A look that costs nothing, since every line of a plain output passes here."""
    return (
        "limit" in text
        or "quota" in text
        or "429" in text
        or "exhausted" in text
        or "credit" in text
    )


def _plain(text: str) -> str:
    return " ".join(text.replace("’", "'").split())


def _duration(words: str) -> float:
    total = 0.0
    for amount, unit in _PART.findall(words):
        unit = unit.lower()
        if unit.startswith(("ms", "milli")):
            total += float(amount) / 1000
        else:
            total += float(amount) * _UNIT_SECONDS[unit[0]]
    return total


def _iso(words: str, local: tzinfo | None) -> float | None:
    try:
        moment = datetime.fromisoformat(words)
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return moment.timestamp()
    return _stamp(moment.replace(tzinfo=UTC), local)


def _clock(match: re.Match[str], now: float, local: tzinfo | None) -> float | None:
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    if match["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match["half"][0] in "pP" else 0)
    if hour > 23 or minute > 59:
        return None
    try:
        zone = _zone(match, local)
    except ValueError:
        return None  # a wrong guess would be hours off
    today = _day(now, zone)
    if match["month"]:
        return _dated(match, today, hour, minute, now, zone)
    ahead = 0
    if match["weekday"]:
        ahead = (_DAYS.index(match["weekday"].lower()) - today.weekday()) % 7
    day = today + timedelta(days=ahead, hours=hour, minutes=minute)
    moment = _stamp(day, zone)
    if moment < now - _JUST_PASSED_SEC:
        moment = _stamp(day + timedelta(days=7 if match["weekday"] else 1), zone)
    return moment


def _dated(
    match: re.Match[str], today: datetime, hour: int, minute: int, now: float, zone: tzinfo | None
) -> float | None:
    month, day = _MONTHS.index(match["month"].lower()) + 1, int(match["day"])
    years = [int(match["year"])] if match["year"] else [today.year, today.year + 1]
    for year in years:
        try:
            moment = _stamp(datetime(year, month, day, hour, minute, tzinfo=UTC), zone)
        except ValueError:
            continue
        if match["year"] or moment >= now - 86400:
            return moment
    return None


def _zone(match: re.Match[str], local: tzinfo | None) -> tzinfo | None:
    """The zone that the message names, else the local one. Raises ValueError for an unknown one."""
    from datetime import timezone
    from zoneinfo import ZoneInfo

    name = match["zone"] or match["bare"]
    if name is None:
        return local
    if name.upper() in _ZONE_HOURS:
        return timezone(timedelta(hours=_ZONE_HOURS[name.upper()]))
    if match["zone"] is None:
        return local  # any short word: the sentence goes on
    try:
        return ZoneInfo(name)
    except (KeyError, OSError) as problem:  # unknown, or a folder of the zone files
        raise ValueError(name) from problem


def _day(now: float, zone: tzinfo | None) -> datetime:
    """Midnight of the day that it is there, as bare figures."""
    if zone is None:
        year, month, day = time.localtime(now)[:3]
    else:
        there = datetime.fromtimestamp(now, zone)
        year, month, day = there.year, there.month, there.day
    return datetime(year, month, day, tzinfo=UTC)


def _stamp(figures: datetime, zone: tzinfo | None) -> float:
    """Seconds since the epoch of what a clock in that zone shows; the zone of `figures` is none."""
    if zone is not None:
        return figures.replace(tzinfo=zone).timestamp()
    # mktime asks the system, which knows the summer times of this machine.
    return time.mktime((*figures.timetuple()[:6], 0, 0, -1))
