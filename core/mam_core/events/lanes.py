"""All lanes of a relay: one for each broker that has work, and not more than so many."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from itertools import islice

from mam_core.audit import warn
from mam_core.events.connecting import Dial
from mam_core.events.lane import Lane
from mam_core.events.public_brokers import public_warning
from mam_core.record_parts import Broker

#: Each is a connection, and now and then a thread.
MAX_LANES = 32
#: A lane without work for so long is closed; where others wait for one, also a lane that is down.
IDLE_SEC = 60.0

#: A broker as one is told from another.
Way = tuple[str, int, bool, str | None, str | None]


def way_to(broker: Broker) -> Way:
    return broker[:5]


def where(way: Way) -> str:
    return f"{way[0]}:{way[1]}"


class Lanes:
    """By the way that they lead."""

    def __init__(self, dial: Dial, ring: Callable[[], object]) -> None:
        self._dial = dial
        self._ring = ring
        self._lanes: dict[Way, Lane] = {}
        self._used_at: dict[Way, float] = {}
        self._turns: dict[Way, None] = {}  #: those that wait for a lane, in order
        self._looked_at = time.monotonic()

    def __iter__(self) -> Iterator[tuple[Way, Lane]]:
        return iter(list(self._lanes.items()))

    def __contains__(self, way: Way) -> bool:
        return way in self._lanes

    def use(self, broker: Broker) -> Lane | None:
        """The lane to a broker, begun if need be; None when there are too many before it."""
        way = way_to(broker)
        lane = self._lanes.get(way)
        if lane is None:
            self._turns.setdefault(way)
            if way not in islice(self._turns, max(0, MAX_LANES - len(self._lanes))):
                return None
            del self._turns[way]
            lane = self._lanes[way] = Lane(broker, self._dial, self._ring)
            if warning := public_warning(broker.host):
                warn(warning)
        self._used_at[way] = time.monotonic()
        return lane

    def reached(self) -> dict[str, bool]:
        """Which brokers take events now, and which do not, by their place; no word about one that
        is still being tried. Of several logins at one broker, the one that fails is told."""
        found: dict[str, bool] = {}
        for way, lane in self._lanes.items():
            if lane.is_up or lane.trouble:
                place = where(way)
                found[place] = lane.is_up and found.get(place, True)
        return found

    def is_impatient(self) -> bool:
        return any(lane.is_impatient() for lane in self._lanes.values())

    def watched(self) -> dict[int, int]:
        """What to poll, and for what."""
        watched = (lane.watched() for lane in self._lanes.values())
        return dict(each for each in watched if each is not None)

    def useless(self, wanted: Collection[Way], busy: Collection[Way]) -> list[Way]:
        """Asked now and then: those to be closed. Who still wants one stands in line again."""
        now = time.monotonic()
        if now - self._looked_at < IDLE_SEC:
            return []
        self._looked_at = now
        self._turns = {way: None for way in self._turns if way in wanted}
        return [
            way
            for way, lane in self
            if way not in busy
            and (
                (self._turns and not lane.is_up)
                or (way not in wanted and now - self._used_at[way] > IDLE_SEC)
            )
        ]

    def remove(self, way: Way) -> Lane:
        return self._lanes.pop(way)

    def trouble(self, waiting: Collection[Way]) -> str:
        """Why events wait for these."""
        return "; ".join(
            f"{where(way)}: {lane.trouble}" for way, lane in self if way in waiting and lane.trouble
        )
