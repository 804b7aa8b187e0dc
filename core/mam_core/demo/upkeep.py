"""What lets a demonstration go on for hours: questions that nobody answers are answered after a
while, ended jobs are removed with all their files, and no job is added while many wait."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress

from mam_core import git
from mam_core.demo.place import Place
from mam_core.errors import MamError
from mam_core.locations import logs_path
from mam_core.operations.answer import answer
from mam_core.operations.clean import Selection, clean
from mam_core.operations.delivery import Wait
from mam_core.operations.listing import listing, query, shown_of
from mam_core.operations.shown import ShownState
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.summaries import Summary

#: So long a question is left to the person who looks on.
PATIENCE_SEC = 60.0
#: Ended jobs: more are not kept, and then so many of the oldest are removed at once.
MOST_ENDED = 120
_AT_ONCE = 20
#: Jobs that wait: the machine is slow, or somebody has paused them.
MOST_PENDING = 15


class Upkeep:
    """For one thread; `look` is called again and again."""

    def __init__(self, registry: Registry, place: Place) -> None:
        self._registry = registry
        self._place = place
        self._asked: dict[str, float] = {}  #: since when a job has been seen to wait

    def look(self) -> bool:
        """Once; whether there is room for another job."""
        jobs = listing(self._registry, query()).jobs
        self._answer([job for job in jobs if job.status is Status.RUNNING])
        ended = sorted((job for job in jobs if not job.status.is_live), key=_ended_at)
        if len(ended) > MOST_ENDED:
            self._remove(ended[:_AT_ONCE])
        return sum(job.status is Status.PENDING for job in jobs) < MOST_PENDING

    def _answer(self, running: list[Summary]) -> None:
        now, shown = time.monotonic(), shown_of(self._registry, running)
        waiting = [name for name, one in shown.items() if one.state is ShownState.WAITING]
        self._asked = {job_id: self._asked.get(job_id, now) for job_id in waiting}
        for job_id, since in self._asked.items():
            if now - since >= PATIENCE_SEC:
                with suppress(MamError):  # somebody was faster
                    answer(self._registry, job_id, "y", Wait(None))

    def _remove(self, jobs: list[Summary]) -> None:
        """As `mam clean`, and then what that keeps for a return."""
        cleaned = clean(self._registry, Selection(tuple(job.job_id for job in jobs)))
        path = self._place.registry_path
        gone = [os.path.join(logs_path(path, {}), job_id) for job_id in cleaned.job_ids]
        if cleaned.batch is not None:
            gone.append(os.path.join(path, ".archive", cleaned.batch))
        project = self._place.workdir
        gone += [os.path.join(project, ".git", "refs", "mam", one) for one in cleaned.job_ids]
        for folder in gone:
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(MamError):  # git is not here, or at work itself
            git.do(project, "prune", "--expire=10.minutes.ago")


def _ended_at(job: Summary) -> str:
    return job.ended_at or job.updated_at
