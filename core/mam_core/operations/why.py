"""Why a job stands where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mam_core.claims import Refusal
from mam_core.operations.retry import ending
from mam_core.records import Job, Status
from mam_core.registry import Registry


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that keeps a pending job from being claimed, and the state of any other."""

    job: Job
    refusals: tuple[Refusal, ...]

    @property
    def sentences(self) -> list[str]:
        job = self.job
        if job.status is Status.PENDING:
            if self.refusals:
                return [refusal.message for refusal in self.refusals]
            return [
                f"the next session with label {job.agent_session} that serves agent {job.agent} "
                "will take it"
            ]
        if job.status is Status.RUNNING:
            return [_running(job)]
        when = f" since {job.ended_at}" if job.ended_at else ""
        return [f"it is {ending(job)}{when}"]

    def to_dict(self) -> dict[str, Any]:
        job = self.job
        return {
            "job_id": job.job_id,
            "status": job.status,
            "claimable": job.status is Status.PENDING and not self.refusals,
            "refusals": [{"rule": rule, "message": words} for rule, words in self.refusals],
            "reason": job.reason,
            "detail": job.detail,
            "sentences": self.sentences,
        }


def why(registry: Registry, job_id: str) -> Explanation:
    job = registry.get(job_id)
    waits = job.status is Status.PENDING
    return Explanation(job, tuple(registry.refusals(job_id)) if waits else ())


def _running(job: Job) -> str:
    where = f" on {job.node}" if job.node else ""
    since = f" since {job.started_at}" if job.started_at else ""
    if job.lease is not None:
        holder = f", leased to {job.lease.owner} for {job.lease.ttl_sec:g} s at a time"
    else:
        holder = ", unsupervised: only its own timeouts end it"
    cancelling = ""
    if job.is_cancelling:
        by = f" by {job.cancel_requested_by}" if job.cancel_requested_by else ""
        cancelling = f"; it was asked to end at {job.cancel_requested_at}{by}"
    return f"it is running as attempt {job.attempt}{where}{since}{holder}{cancelling}"
