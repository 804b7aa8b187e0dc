"""Which moments of a schedule are due, missed or settled: time goes in, a decision comes out.

Nothing here reads a clock or writes anything. A schedule is *settled* up to a moment; whatever
happens, no moment at or before that is ever due again. So two processes, a kill between them or a
clock that goes back cannot make one twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from mam_core.clock import parse_stamp, stamp
from mam_core.schedules.cron import Cron, Zone, zone_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mam_core.config.tables import ScheduleSettings

#: Noticed so late, a moment is still on time: long-lived commands look every few seconds.
GRACE_SEC = 60.0
#: A clock that was set back further than this was wrong before: the schedule begins anew.
SET_BACK_SEC = 86400.0
#: Of those that were missed so many are named, the newest; so far back they are looked for.
NAMED = 10
REACH_SEC = 35 * 86400.0
#: Counted up to here: after a leap of the clock a higher number says nothing more.
MOST_MISSED = 1000
#: Forgotten when no other was missed for so long.
KEPT_SEC = 7 * 86400.0


class Schedule(NamedTuple):
    """One ``[schedules.NAME]``."""

    name: str
    template: str
    every: float | None
    cron: Cron | None
    zone: Zone
    rule: str  #: as a person would say it
    overlap: bool = False
    catch_up: bool = False

    @classmethod
    def of(cls, name: str, settings: ScheduleSettings) -> Schedule:
        cron = Cron.parse(settings.cron) if settings.cron else None
        zone = zone_named(settings.timezone) if settings.timezone else None
        rule = settings.cron or f"every {_length(settings.every or 0)}"
        if settings.cron and settings.timezone:
            rule += f" {settings.timezone}"
        return cls(
            *(name, settings.template, settings.every, cron, zone, rule),
            *(settings.overlap, settings.catch_up),
        )

    def moments(self, since: float) -> Iterator[float]:
        """Those later than `since`, in order."""
        if self.cron is not None:
            yield from self.cron.moments(since, self.zone)
            return
        assert self.every is not None
        count = since // self.every
        while True:
            count += 1
            yield count * self.every

    def after(self, moment: float) -> float | None:
        return _first_after(self, moment)


def _length(seconds: float) -> str:
    """As the settings would have it: ``90s``, ``30m``, ``2h``, ``1d``."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


@lru_cache(maxsize=256)
def _first_after(schedule: Schedule, moment: float) -> float | None:
    """Asked every few seconds about the same moment, by each of many processes."""
    return next(schedule.moments(moment), None)


class Missed(NamedTuple):
    """A moment without a job, and why there is none."""

    at: str
    why: str


class Memory(NamedTuple):
    """What is kept of a schedule between two looks, beside the pauses of the registry."""

    until: str  #: settled up to here
    rule: str = ""
    job_id: str = ""  #: the job that it registered last
    at: str = ""  #: the moment that this was for
    missed: tuple[Missed, ...] = ()  #: the newest
    missed_count: int = 0  #: all that are remembered, `MOST_MISSED` at most

    @classmethod
    def read(cls, kept: Mapping[str, Any] | None) -> Memory | None:
        """None where nothing is kept, or nothing that can be read: it begins anew."""
        try:
            if kept is None or parse_stamp(kept["until"]) < 0:
                return None
            missed = tuple(Missed(str(at), str(why)) for at, why in kept.get("missed", ()))
            rule, job_id, at = (str(kept.get(name, "")) for name in ("rule", "job_id", "at"))
            count = int(kept.get("missed_count", 0))
            return cls(kept["until"], rule, job_id, at, missed, count)
        except (KeyError, TypeError, ValueError):
            return None

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "missed": [list(one) for one in self.missed]}

    def with_missed(self, found: Sequence[Missed], count: int) -> Memory:
        named = (*self.missed, *found)[-NAMED:]
        return self._replace(missed=named, missed_count=_capped(self.missed_count + count))

    def without_old(self, now: float) -> Memory:
        """Nothing is said for ever; what is still to come was missed by a clock that was wrong."""
        if not self.missed_count:
            return self
        newest = max((_read_stamp(one.at) for one in self.missed), default=0.0)
        if now - KEPT_SEC <= newest <= now + GRACE_SEC:
            return self
        return self._replace(missed=(), missed_count=0)


def in_words(count: int) -> str:
    """How many were missed, as far as they are counted."""
    return f"{count}+" if count >= MOST_MISSED else str(count)


def _capped(count: int) -> int:
    return min(count, MOST_MISSED)


def _read_stamp(text: str) -> float:
    try:
        return parse_stamp(text)
    except ValueError:
        return 0.0


class Due(NamedTuple):
    """What one look at the clock comes to."""

    memory: Memory  #: as it is to be kept, but for the job
    is_new: bool  #: something is to be written
    fire: float | None = None  #: the moment for which a job is to be registered
    next: float | None = None  #: where nothing is to be written: when to look again
    missed: tuple[Missed, ...] = ()  #: by this look, the newest
    missed_count: int = 0  #: by this look, `MOST_MISSED` at most


def decide(schedule: Schedule, known: Memory | None, now: float, *, open_since: float = 0.0) -> Due:
    """What is due. Of several moments only the newest is; one that passed before `open_since`,
    while the schedule was paused, counts for nothing."""
    known = known and known.without_old(now)
    if known is None or parse_stamp(known.until) > now + SET_BACK_SEC:
        began = (known or Memory(""))._replace(until=stamp(now), rule=schedule.rule)
        return Due(began, True)
    since = max(parse_stamp(known.until), open_since, now - _reach(schedule))
    if known.rule != schedule.rule:
        since = max(since, now - GRACE_SEC)  # another rule has missed nothing yet
    first = schedule.after(since)
    if first is None or first > now:
        return Due(known, False, next=first)
    last: deque[float] = deque(maxlen=NAMED + 1)
    count = 0
    for moment in takewhile(lambda moment: moment <= now, schedule.moments(since)):
        last.append(moment)
        count += 1
    newest = last[-1]
    is_on_time = now - newest <= GRACE_SEC or schedule.catch_up
    late = list(last)[:-1] if is_on_time else list(last)
    missed = tuple(Missed(stamp(moment), "nobody was there to register it") for moment in late)
    missed_count = _capped(count - is_on_time)
    kept = known.with_missed(missed, missed_count)
    kept = kept._replace(until=stamp(newest), rule=schedule.rule)
    fire = newest if is_on_time else None
    return Due(kept, True, fire, missed=missed[-NAMED:], missed_count=missed_count)


def _reach(schedule: Schedule) -> float:
    """So far back moments are looked for: no further than they are counted."""
    if schedule.every is None:
        return REACH_SEC
    return min(REACH_SEC, (MOST_MISSED + 2) * schedule.every)
