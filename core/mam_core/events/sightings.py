"""The records as the feed has seen them: what is new, what is different, what is gone.

Kept for each job is a number that stands for what was told, not the record:
that is all that telling a change needs, and it is small enough for 100,000 jobs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from mam_core import codec
from mam_core.errors import BadJobId, JobNotFound, UnreadableRecord
from mam_core.records import Job, Status
from mam_core.stores.base import Query, Store
from mam_core.summaries import Summary, Unreadable

#: Of the jobs that run when we begin, so many are read, to learn where their events go.
_MAX_RUNNING = 2_000
#: And of those that wait so many, the next to run first: the others are read when they begin.
_MAX_PENDING = 100


#: Of so many records the last bytes are kept: message and directory both tell of a change, and
#: what is read twice is parsed once.
_LATELY = 256


class Opening(NamedTuple):
    """Every job that there was when we began."""

    jobs: list[Summary]
    unreadable: list[Unreadable]


class Seen(NamedTuple):
    """A record as it was read just now."""

    job_id: str
    job: Job | Unreadable | None
    mark: int  #: stands for the record's bytes; 0 when it is gone

    @property
    def readable(self) -> Job | None:
        return self.job if isinstance(self.job, Job) else None


class Sightings:
    """Reads records, and knows which of what it reads has not been told yet."""

    def __init__(self, store: Store, path: str, jobs: frozenset[str] | None = None) -> None:
        self._store = store
        self._path = path
        self._jobs = jobs
        self._told: dict[str, int] = {}
        self._rows: dict[str, int] = {}  #: what the last look at all records said
        self._starts: dict[str, int] = {}
        self._live: set[str] = set()  #: those that had not ended when they were last seen
        self._opening: Opening | None = None
        self._lately: dict[str, tuple[bytes, Seen]] = {}  #: what was read last, the oldest first

    def wants(self, job_id: str) -> bool:
        return self._jobs is None or job_id in self._jobs

    def begin(self) -> list[Job]:
        """Take everything that is there as known; the answer is the jobs that run, or will soon."""
        if self._jobs is None:
            self._opening = opening = self._look()
            self._rows = _marks(opening)
            self._starts = {row.job_id: row.last_seq for row in opening.jobs if row.last_seq}
            self._live = {row.job_id for row in opening.jobs if row.status.is_live}
            running = (row.job_id for row in opening.jobs if row.status is Status.RUNNING)
            pending = (row.job_id for row in opening.jobs if row.status is Status.PENDING)
            ids: Iterable[str] = [
                *islice(running, _MAX_RUNNING),
                *islice(pending, _MAX_PENDING),
            ]
        else:
            ids = self._jobs
        seen = [self.read(job_id) for job_id in ids]
        jobs = [one.readable for one in seen if one.readable is not None]
        if self._jobs is not None:
            for one in seen:
                self.is_news(one)
            self._starts = {job.job_id: job.last_seq for job in jobs}
        return jobs

    def take_opening(self) -> Opening | None:
        """What there was at the beginning, once, and until the next look at everything."""
        opening, self._opening = self._opening, None
        return opening

    def start_of(self, job_id: str) -> int | None:
        """How far a job's events went when we began; None for a job that was not there."""
        if job_id in self._starts:
            return self._starts[job_id]
        return 0 if job_id in self._rows else None

    def is_known(self, job_id: str) -> bool:
        """It was there when it was last looked for."""
        return job_id in self._told or job_id in self._rows

    def was_live(self, job_id: str) -> bool:
        """It was there and had not ended."""
        return job_id in self._live

    def read(self, job_id: str) -> Seen:
        """The record as it is. Raises `MamError` when the registry cannot be read at all."""
        try:
            data = self._store.raw(job_id)
        except JobNotFound:
            return Seen(job_id, None, 0)
        except UnreadableRecord as problem:
            return _unreadable(job_id, problem)
        except BadJobId as problem:
            there = os.path.lexists(os.path.join(self._path, f"{job_id}.json"))
            shown = job_id.encode("utf-8", "backslashreplace").decode()
            return _unreadable(shown, problem) if there else Seen(shown, None, 0)
        known = self._lately.pop(job_id, None)
        if known is None or known[0] != data:
            known = data, _decoded(job_id, data)
        self._lately[job_id] = known
        if len(self._lately) > _LATELY:
            del self._lately[next(iter(self._lately))]
        return known[1]

    def is_news(self, seen: Seen) -> bool:
        """It differs from what was told last, and counts as told from now on."""
        job_id = seen.job_id
        if seen.job is None:
            known = self.is_known(job_id)
            self._forget(job_id)
            return known
        if self._told.get(job_id) == seen.mark:
            return False
        self._told[job_id] = seen.mark
        if seen.readable is not None:
            (self._live.add if seen.readable.is_live else self._live.discard)(job_id)
        row = Summary.of(seen.job) if isinstance(seen.job, Job) else seen.job
        self._rows[job_id] = hash(row)
        return True

    def changed(self) -> list[str]:
        """Look at everything: the jobs whose row differs from the last look, or is gone."""
        if self._jobs is not None:
            return sorted(self._jobs)
        self._opening = None
        before = self._rows
        now = _marks(self._look())
        different = [job_id for job_id, mark in now.items() if before.get(job_id) != mark]
        gone = [job_id for job_id in before if job_id not in now]
        # Those that are gone stay until they have been told as such.
        self._rows = now | dict.fromkeys(gone, 0)
        return different + gone

    def _look(self) -> Opening:
        return Opening(*self._store.find(Query()))

    def _forget(self, job_id: str) -> None:
        for known in (self._told, self._rows, self._starts):
            known.pop(job_id, None)
        self._live.discard(job_id)


def _marks(look: Opening) -> dict[str, int]:
    return {row.job_id: hash(row) for rows in look for row in rows}


def _decoded(job_id: str, data: bytes) -> Seen:
    try:
        return Seen(job_id, codec.decode_job(data, job_id), hash(data))
    except UnreadableRecord as problem:
        return _unreadable(job_id, problem)


def _unreadable(job_id: str, problem: Exception) -> Seen:
    return Seen(job_id, Unreadable(job_id, str(problem)), hash(str(problem)))
