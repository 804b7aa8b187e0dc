"""All bars there are, and the same as they were at an earlier moment; in lanes when asked.

A job's bars are changed together, by the job. What stands in which row is kept from one look
to the next (`packing`), so that a look costs by what is seen and not by what ever was.
"""

from __future__ import annotations

from collections.abc import Iterable

from mam_core.operations.bars import Bar, Dimension
from mam_core.operations.packing import Packing


class Lanes:
    """All bars there are."""

    until = float("inf")  #: nothing that began later is in it

    def __init__(self, bars: Iterable[Bar] = ()) -> None:
        self._by_job: dict[str, tuple[Bar, ...]] = {}
        self._bars: dict[tuple[str, int], Bar] = {}
        self._packings: dict[Dimension, Packing] = {}
        self.load(bars)

    def __len__(self) -> int:
        return len(self._bars)

    def load(self, bars: Iterable[Bar]) -> None:
        """These and no others."""
        by_job: dict[str, list[Bar]] = {}
        for bar in bars:
            by_job.setdefault(bar.job_id, []).append(bar)
        self._by_job = {job_id: tuple(own) for job_id, own in by_job.items()}
        self._bars = {bar.key: bar for own in self._by_job.values() for bar in own}
        self._packings = {}

    def put(self, job_id: str, bars: Iterable[Bar]) -> bool:
        """All attempts of one job, as they are now; True when one is new or different."""
        own = tuple(bars)
        known = self._by_job.get(job_id, ())
        if own == known:
            return False
        before = {bar.key: bar for bar in known}
        for bar in own:
            if (was := before.pop(bar.key, None)) == bar:
                continue
            self._bars[bar.key] = bar
            for packing in self._packings.values():
                packing.put(bar, was)
        for bar in before.values():
            del self._bars[bar.key]
            for packing in self._packings.values():
                packing.remove(bar)
        if own:
            self._by_job[job_id] = own
        else:
            del self._by_job[job_id]
        return True

    def of(self, job_id: str) -> tuple[Bar, ...]:
        return self._by_job.get(job_id, ())

    def remove(self, job_id: str) -> bool:
        return self.put(job_id, ())

    # -- asking ------------------------------------------------------------------------------

    def packed(self, by: Dimension) -> Packing:
        """In rows; what changed since the last time is packed now."""
        packing = self._packings.get(by)
        if packing is None:
            packing = self._packings[by] = Packing(by, self._bars.values())
        elif packing.is_stale:
            packing.mend(self._bars.values())
        return packing

    def seen(self, bars: Iterable[Bar]) -> list[Bar]:
        return list(bars)

    def reach(self) -> tuple[float, float] | None:
        """From the first beginning to the last end or beginning; None when there is nothing."""
        if not self._bars:
            return None
        ends = (
            bar.began_at if bar.ended_at is None else bar.ended_at for bar in self._bars.values()
        )
        return min(bar.began_at for bar in self._bars.values()), max(ends)


class LanesThen:
    """The same as they were at an earlier moment: what began later is not there, what ended later
    runs. Only what is asked for is looked at."""

    def __init__(self, lanes: Lanes, at: float) -> None:
        self._lanes = lanes
        self.until = at

    def of(self, job_id: str) -> tuple[Bar, ...]:
        return tuple(self.seen(self._lanes.of(job_id)))

    def packed(self, by: Dimension) -> Packing:
        """As it is now: a bar's row depends only on what began before it."""
        return self._lanes.packed(by)

    def seen(self, bars: Iterable[Bar]) -> list[Bar]:
        """What such bars were then."""
        return [then for bar in bars if (then := bar.then(self.until)) is not None]
