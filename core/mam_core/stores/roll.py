"""A roll of jobs held in memory, and every question a store is asked about them.

The files store reads the folder into one when it has no index to ask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from mam_core import codec
from mam_core.claims import may_claim
from mam_core.records import Job, Status
from mam_core.stores.base import Facts, NameKind, Query, Want
from mam_core.summaries import Summary, claim_order


class Roll:
    """Jobs by id, and the answers that depend on all of them."""

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self.jobs = {job.job_id: job for job in jobs}

    def in_order(self) -> list[Job]:
        return sorted(self.jobs.values(), key=lambda job: (claim_order(job), job.job_id))

    def find(self, query: Query) -> list[Summary]:
        return [Summary.of(job) for job in self.bodies(query)]

    def bodies(self, query: Query) -> Iterator[Job]:
        return (job for job in self.in_order() if query.matches(job))

    def stored(self, query: Query) -> Iterator[bytes]:
        return map(codec.encode_job, self.bodies(query))

    def next_claimable(self, want: Want, facts: Facts) -> Job | None:
        waiting = [
            job
            for job in self.jobs.values()
            if job.status is Status.PENDING and job.agent_session == want.agent_session
        ]
        waiting.sort(key=_turn)
        return next((job for job in waiting if may_claim(job, want, facts)), None)

    def ahead(self, want: Want, job: Summary, facts: Facts) -> int:
        turn = (-job.priority, job.order, job.job_id)
        return sum(_turn(it) < turn and may_claim(it, want, facts) for it in self.jobs.values())

    def status_of(self, job_id: str) -> Status | None:
        job = self.jobs.get(job_id)
        return job.status if job else None

    def running_in(self, group: str) -> int:
        return Counter(j.group for j in self.jobs.values() if j.status is Status.RUNNING)[group]

    def queued(self) -> dict[str, int]:
        return Counter(j.agent_session for j in self.jobs.values() if j.status is Status.PENDING)

    def has(self, kind: NameKind, name: str) -> bool:
        return any(getattr(job, kind) == name for job in self.jobs.values())

    def names(self, kind: NameKind) -> list[str]:
        return sorted({name for job in self.jobs.values() if (name := getattr(job, kind))})

    def live_with_key(self, key: str) -> str | None:
        return self._first(lambda job: job.key == key)

    def live_twin(self, agent_session: str, prompt: str) -> str | None:
        return self._first(lambda j: j.agent_session == agent_session and j.prompt == prompt)

    def live_writer(self, path: str) -> str | None:
        return self._first(lambda job: path in job.artifact_paths)

    def awaited(self) -> frozenset[str]:
        return frozenset(p for job in self.jobs.values() if job.is_live for p in job.after)

    def ended(self) -> list[Summary]:
        return [Summary.of(job) for job in self.in_order() if job.is_ended]

    def last_order(self) -> int:
        return max((claim_order(job) for job in self.jobs.values()), default=0)

    def _first(self, test: Callable[[Job], bool]) -> str | None:
        return next((j.job_id for j in self.in_order() if j.is_live and test(j)), None)


def _turn(job: Job) -> tuple[int, int, str]:
    """Whose turn it is: the most urgent, and of those the oldest."""
    return -job.priority, claim_order(job), job.job_id
