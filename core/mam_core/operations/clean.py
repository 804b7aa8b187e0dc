"""Take ended jobs out of the registry, into an archive that gives them back.

Only what is over is cleaned, and nothing that a live job still comes after: its
child would wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mam_core.clock import parse_stamp
from mam_core.errors import JobNotFound, MamError, RegistryMissing, TransitionRefused
from mam_core.operations.outcome import Outcome
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.rights import Right
from mam_core.stores.base import Transaction
from mam_core.summaries import Summary


@dataclass(frozen=True, slots=True)
class Selection:
    """Which ended jobs are meant. Empty means all of them."""

    job_ids: tuple[str, ...] = ()
    statuses: frozenset[Status] = frozenset()
    group: str | None = None
    older_than_sec: float | None = None  #: counted from the end of the job

    def includes(self, job: Summary, now: float) -> bool:
        return (
            (not self.statuses or job.status in self.statuses)
            and self.group in (None, job.group)
            and (self.older_than_sec is None or _age(job, now) >= self.older_than_sec)
        )


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a clean did, or would do: an outcome for each job, and the batch that undoes it."""

    outcomes: tuple[Outcome, ...]
    batch: str | None = None  #: None when nothing was moved

    @property
    def job_ids(self) -> list[str]:
        return [outcome.job_id for outcome in self.outcomes if outcome.ok]


def clean(registry: Registry, selection: Selection, *, dry_run: bool = False) -> Cleaned:
    """Archive the jobs that are meant and may go; the others are named with what keeps them."""
    if not dry_run:
        registry.check_allowed(Right.CLEAN)
    outcomes: list[Outcome] = []

    def choose(tx: Transaction) -> list[str]:
        outcomes.extend(_judge(tx, selection, registry.clock.now()))
        return [] if dry_run else [outcome.job_id for outcome in outcomes if outcome.ok]

    try:
        batch = registry.archive_chosen(choose)
    except RegistryMissing:
        return Cleaned(tuple(_unknown(job_id) for job_id in selection.job_ids))
    return Cleaned(tuple(outcomes), batch)


def undo(registry: Registry, batch: str | None = None) -> list[str]:
    """The ids that a batch, by default the newest, brings back."""
    registry.check_allowed(Right.CLEAN)
    return registry.restore(batch)


def _judge(tx: Transaction, selection: Selection, now: float) -> Iterator[Outcome]:
    ended = {job.job_id: job for job in tx.ended()}
    awaited = tx.awaited()
    for job_id in selection.job_ids or ended:
        job = ended.get(job_id)
        if job is None:
            yield _not_ended(tx, job_id)
        elif selection.includes(job, now):
            yield _keep(job) if job_id in awaited else _go(job)


def _go(job: Summary) -> Outcome:
    return Outcome(job.job_id, True, f"job {job.job_id} is cleaned ({job.status})")


def _keep(job: Summary) -> Outcome:
    words = f"job {job.job_id} is kept: a job that has not ended comes after it"
    return Outcome.refused(job.job_id, TransitionRefused(words))


def _not_ended(tx: Transaction, job_id: str) -> Outcome:
    try:
        job = tx.get(job_id)
    except MamError as problem:
        return Outcome.refused(job_id, problem)
    words = f"job {job_id} is kept: it is {job.status}"
    return Outcome.refused(job_id, TransitionRefused(words), job)


def _unknown(job_id: str) -> Outcome:
    return Outcome.refused(job_id, JobNotFound(f"there is no job {job_id}"))


def _age(job: Summary, now: float) -> float:
    """A job whose end nobody can date counts as just ended, so that it is not cleaned by age."""
    try:
        return now - parse_stamp(job.ended_at or job.updated_at)
    except ValueError:
        return 0.0
