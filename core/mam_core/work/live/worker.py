"""A worker that lives in a pane of tmux with one agent, and gives it job after job.

One slot, and one thread, which passes bytes between agent and pane whether there
is a job or not. All else is as with any worker.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from mam_core.agents.profiles import Profile
from mam_core.audit import warn
from mam_core.errors import MamError
from mam_core.pace import paced
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.work.attempt import Attempt
from mam_core.work.counterpart import CounterpartOf, no_counterpart
from mam_core.work.hold import Terms
from mam_core.work.live.attempt import LiveAttempt
from mam_core.work.live.session import LiveSession
from mam_core.work.placard import Placard
from mam_core.work.screen import Screen
from mam_core.work.worker import Stops, Until, Work, Worker

#: While nobody is in the pane: how soon a wish to end is heard.
_LOOK_SEC = 0.1


class LiveWorker(Worker):
    """Runs until its work is done or it is asked to stop; the agent ends with it."""

    def __init__(
        self,
        work: Work,
        open_registry: Callable[[], Registry],
        profile_of: Callable[[str], Profile],
        screen: Screen,
        stops: Stops,
        session: LiveSession,
        counterpart_of: CounterpartOf = no_counterpart,
        placard: Placard | None = None,
    ) -> None:
        super().__init__(work, open_registry, profile_of, screen, stops, counterpart_of, placard)
        self._session = session

    def run(self) -> None:
        try:
            with self._open_registry() as registry:
                while (job := self._next_or_none(registry)) is not None:
                    self._run_one(registry, job, 0)
                    if self._work.until is Until.ONCE:
                        return
        except (MamError, OSError, sqlite3.Error) as problem:
            warn(f"the worker ends: {problem}")
        finally:
            self._session.close(self._work.grace_sec)

    def _next_or_none(self, registry: Registry) -> Job | None:
        """The next job; while there is none, the agent and its pane go on."""
        while self._stops.may_claim():
            job, again = self._looked(registry, 0)
            if job is not None or again is None:
                return job
            self._sleep(again)
        return None

    def _attempt(self, registry: Registry, job: Job, profile: Profile, terms: Terms) -> Attempt:
        return LiveAttempt(
            self._session, registry, job, profile, terms, self._screen, self._stops.hands_back
        )

    def _sleep(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._stops.may_claim() and (left := deadline - time.monotonic()) > 0:
            if self._session.agent is not None:
                self._session.wait(left, self._work.grace_sec)
            else:
                time.sleep(min(paced(_LOOK_SEC), left))
