"""What became of one job when a verb was given many: done, or refused and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mam_core.errors import LockTimeout, MamError, StoreError
from mam_core.records import Job


@dataclass(frozen=True, slots=True)
class Outcome:
    """One job's part in a verb; `message` is a whole sentence that names the job."""

    job_id: str
    ok: bool
    message: str
    job: Job | None = None  #: the record after the verb
    error: MamError | None = None

    @classmethod
    def refused(cls, job_id: str, error: MamError, job: Job | None = None) -> Outcome:
        return cls(job_id, False, error.message, job, error)

    def to_dict(self) -> dict[str, Any]:
        """For programs: no record, since an outcome is printed where secrets are not wanted."""
        status = self.job.status if self.job else None
        return {"job_id": self.job_id, "ok": self.ok, "status": status, "message": self.message}


def for_each(job_ids: Sequence[str], act: Callable[[str], Outcome]) -> list[Outcome]:
    """`act` on every job, with an outcome each: one refusal does not keep the others waiting.

    Where the registry itself fails, the rest is not tried: each would wait as long again.
    """
    outcomes: list[Outcome] = []
    for job_id in job_ids:
        try:
            outcomes.append(act(job_id))
        except (LockTimeout, StoreError) as problem:
            rest = job_ids[len(outcomes) :]
            return outcomes + [Outcome.refused(job_id, problem) for job_id in rest]
        except MamError as problem:
            outcomes.append(Outcome.refused(job_id, problem))
    return outcomes
