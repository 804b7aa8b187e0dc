"""Time, as the registry needs it: a wall clock to show, a boot clock to measure.

Leases are measured on the clock that counts since boot, which no operator, NTP
step or time zone can move; wall time is for people and for the order of jobs.
Tests pass a clock of their own.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Protocol

_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """What the registry asks of time."""

    def now(self) -> float:
        """Seconds since the epoch, by the wall clock."""

    def since_boot(self) -> float:
        """Seconds since boot; comparable between processes of one boot only."""

    def suspended(self) -> float:
        """For how many of those seconds the machine was suspended."""

    def boot_id(self) -> str:
        """A word that changes with every boot."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.time()

    def since_boot(self) -> float:
        return time.clock_gettime(_BOOTTIME)

    def suspended(self) -> float:
        return max(0.0, time.clock_gettime(_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC))

    def boot_id(self) -> str:
        return _boot_id()


@lru_cache(maxsize=1)
def _boot_id() -> str:
    try:
        with open(_BOOT_ID_FILE, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        # No Linux: the moment of boot, to the minute, is as good a name.
        return f"boot-{int((time.time() - time.monotonic()) // 60)}"


def stamp(seconds: float) -> str:
    """The documents' form of a moment: UTC, whole seconds, ``2026-06-19T09:30:00Z``."""
    return _to_the_second(int(seconds // 1)) + "Z"


def fine_stamp(seconds: float) -> str:
    """The audit log's form: as `stamp`, with milliseconds, so that lines sort as they happened."""
    milliseconds = int(seconds * 1000)
    whole, rest = divmod(milliseconds, 1000)
    return f"{_to_the_second(whole)}.{rest:03d}Z"


@lru_cache(maxsize=4)
def _to_the_second(seconds: int) -> str:
    # Asked three times for each change, mostly about one second.
    # Not strftime: its year has fewer than four digits before the year 1000, which nobody parses.
    year, month, day, hour, minute, second, *_ = time.gmtime(seconds)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"


def parse_stamp(text: str) -> float:
    """Seconds since the epoch for any ISO 8601 moment; one without a zone is UTC.

    Raises ValueError for anything else.
    """
    import datetime  # 3 ms of start-up that a claim does not need

    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return moment.timestamp()
