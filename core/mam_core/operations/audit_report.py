"""How the registry stands before anybody touches what runs: the first step of every deploy.

Counts come from the records, by status; whatever is out of order is found by the doctor's own
checks; and what to do next follows from two questions: does something run, has something failed?
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from mam_core.clock import stamp
from mam_core.doctor.checks import AUDITED
from mam_core.errors import RegistryMissing
from mam_core.operations.doctor import Answer, Finding, Ground, Severity, examine
from mam_core.records import Status
from mam_core.stores.base import Query
from mam_core.summaries import Summary
from mam_core.version import __version__

_WRONG = (Severity.WARNING, Severity.PROBLEM)


class Advice(StrEnum):
    """The four cases of what runs and what has failed."""

    GO = "nothing runs and nothing has failed: go ahead"
    WAIT = (
        "jobs run and none has failed: wait for them, or let them finish with the old code; "
        "end none"
    )
    RETRY = "nothing runs and jobs have failed: go ahead, then retry them as fresh attempts"
    LOOK = (
        "jobs run and others have failed: look first why (`mam attention`), hold new ones back "
        "(`mam pause --all`), wait, and retry the failed ones afterwards"
    )


def advice(running: int, failed: int) -> Advice:
    if running:
        return Advice.LOOK if failed else Advice.WAIT
    return Advice.RETRY if failed else Advice.GO


class Scope(NamedTuple):
    """Which jobs are counted; None means all."""

    group: str | None = None
    agent_session: str | None = None

    @property
    def words(self) -> str:
        named = (("group", self.group), ("label", self.agent_session))
        return " ".join(f"{what} {name}" for what, name in named if name) or "all jobs"


class Count(NamedTuple):
    """The jobs of one status."""

    jobs: tuple[Summary, ...]

    @property
    def labels(self) -> dict[str, int]:
        return dict(sorted(Counter(job.agent_session for job in self.jobs).items()))

    @property
    def reasons(self) -> dict[str, int]:
        """Why they ended; those that do not say are left out."""
        return dict(sorted(Counter(str(job.reason) for job in self.jobs if job.reason).items()))

    def __len__(self) -> int:
        return len(self.jobs)


class Report(NamedTuple):
    """What an audit has found."""

    at: str
    node: str
    scope: Scope
    by_status: dict[Status, Count]
    answers: tuple[Answer, ...]

    @property
    def running(self) -> Count:
        return self.by_status[Status.RUNNING]

    @property
    def queued(self) -> Count:
        return self.by_status[Status.PENDING]

    @property
    def failed(self) -> Count:
        return self.by_status[Status.ERROR]

    @property
    def advice(self) -> Advice:
        return advice(len(self.running.jobs), len(self.failed.jobs))

    @property
    def findings(self) -> list[Finding]:
        """All that is not well, and what is good to know."""
        found = (finding for answer in self.answers for finding in answer.findings)
        return [one for one in found if one.severity is not Severity.OK]

    @property
    def wrong(self) -> list[Finding]:
        return [one for one in self.findings if one.severity in _WRONG]

    @property
    def is_well(self) -> bool:
        """Nothing has failed and nothing is out of order. That jobs run is no fault."""
        return not self.wrong and not self.failed.jobs

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "at": self.at,
            "node": self.node,
            "version": __version__,
            "scope": self.scope._asdict(),
            "counts": {status: len(count.jobs) for status, count in self.by_status.items()},
            "running": [_job(job) for job in self.running.jobs],
            "queued_labels": self.queued.labels,
            "failed": [_job(job) for job in self.failed.jobs],
            "failed_reasons": self.failed.reasons,
            "findings": [
                {**finding.to_dict(), "check": answer.check.name}
                for answer in self.answers
                for finding in answer.findings
            ],
            "advice": self.advice,
            "case": self.advice.name.lower(),
            "ok": self.is_well,
        }


def _job(job: Summary) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "agent_session": job.agent_session,
        "agent": job.agent,
        "group": job.group,
        "attempt": job.attempt,
        "node": job.node,
        "started_at": job.started_at,
        "ended_at": job.ended_at,
        "reason": job.reason,
    }


def audit(
    ground: Ground, scope: Scope | None = None, *, pause: Callable[[float], object] | None = None
) -> Report:
    """Look at everything; change nothing. Takes as long as the project's own audits do."""
    scope = scope or Scope()
    checks = examine(ground, checks=AUDITED, **({"pause": pause} if pause else {}))
    return Report(
        stamp(ground.registry.clock.now()),
        ground.registry.node,
        scope,
        counted(ground, scope),
        tuple(checks),
    )


def counted(ground: Ground, scope: Scope) -> dict[Status, Count]:
    """The jobs that are meant, by status, every status there."""
    found: Sequence[Summary] = []
    try:
        which = Query(group=scope.group, agent_session=scope.agent_session)
        found = ground.registry.store.find(which)[0]
    except RegistryMissing:
        pass
    return {status: Count(tuple(job for job in found if job.status is status)) for status in Status}
