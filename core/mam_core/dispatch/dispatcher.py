"""A worker that fetches its jobs from a dispatch registry: one task a free slot, never more.

What other nodes want to run is left to them until a slot of ours is free.
"""

from __future__ import annotations

from collections.abc import Callable

from mam_core.agents.profiles import Profile
from mam_core.dispatch.errand import Errand
from mam_core.errors import MamError
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.work.counterpart import CounterpartOf
from mam_core.work.screen import Screen
from mam_core.work.worker import Stops, Work, Worker


class Dispatcher(Worker):
    """Runs until every task of its errand has come to its end, here or elsewhere."""

    def __init__(
        self,
        work: Work,
        open_registry: Callable[[], Registry],
        profile_of: Callable[[str], Profile],
        screen: Screen,
        stops: Stops,
        counterpart_of: CounterpartOf,
        errand: Errand,
    ) -> None:
        super().__init__(work, open_registry, profile_of, screen, stops, counterpart_of)
        self._errand = errand

    def _claimed(self, registry: Registry, number: int) -> Job | None:
        """First what waits under our label: a job that was given back, or that a person retried."""
        job = super()._claimed(registry, number)
        if job is None and self._errand.take(registry):
            job = super()._claimed(registry, number)
        return job

    def _is_drained(self, registry: Registry) -> bool:
        """A job that waits for its next try, or for its agent's quota, is still ours."""
        if self._running or not self._errand.is_over:
            return False
        return not any(map(_lives_in(registry), self._errand.taken.values()))


def _lives_in(registry: Registry) -> Callable[[str], bool]:
    def lives(job_id: str) -> bool:
        try:
            return registry.get(job_id).is_live
        except MamError:
            return False

    return lives
