"""How the registry stands before anybody touches what runs: the first step of every deploy.

Counts come from the records, by status; which pending jobs are blocked is the answer of
`board.why`; whatever is out of order is found by the doctor's own checks; and what to do next
follows from two questions: does something run, has something failed?
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from mam_core.board.why import BlockReasons
from mam_core.clock import stamp
from mam_core.doctor.checks import AUDITED
from mam_core.doctor.findings import many
from mam_core.errors import MamError, RegistryMissing
from mam_core.operations.doctor import Answer, Finding, Ground, Look, Severity, examine
from mam_core.operations.evidence import block_reasons
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

    def to_dict(self) -> dict[str, Any]:
        return {"count": len(self.jobs), "labels": self.labels}


class Backlog(NamedTuple):
    """The pending jobs: those that a worker may claim, and those that something holds."""

    queued: Count = Count(())
    blocked: Count = Count(())
    cannot_run: int = 0  #: of the blocked ones: never, unless a person does something about it
    unserved: Count = Count(())  #: of the queued ones: no session and no worker serves them

    @property
    def words(self) -> str:
        """What keeps them from starting; empty where nothing does."""
        pending = len(self.queued) + len(self.blocked)
        held = len(self.blocked) + len(self.unserved)
        if not held:
            return ""
        if held < pending:
            which = f"{held:,} of {pending:,} pending jobs cannot start now"
        elif pending == 1:
            which = "the pending job cannot start now"
        else:
            which = f"none of the {pending:,} pending jobs can start now"
        why = [f"{len(self.blocked):,} blocked"] if self.blocked else []
        why += [f"{len(self.unserved):,} that nobody serves"] if self.unserved else []
        return f"{which}: {', '.join(why)} (`mam why ID` says what helps)"


class Report(NamedTuple):
    """What an audit has found."""

    at: str
    node: str
    scope: Scope
    by_status: dict[Status, Count]
    backlog: Backlog
    answers: tuple[Answer, ...]

    @property
    def running(self) -> Count:
        return self.by_status[Status.RUNNING]

    @property
    def failed(self) -> Count:
        return self.by_status[Status.ERROR]

    @property
    def advice(self) -> Advice:
        return advice(len(self.running.jobs), len(self.failed.jobs))

    @property
    def advice_in_full(self) -> str:
        """With what the case alone does not say: what is out of order, and what cannot start."""
        wrong = many(len(self.wrong), "finding")
        first = f"but first mend what is out of order ({wrong})" if self.wrong else ""
        return "; ".join(filter(None, (self.advice, first, self.backlog.words)))

    @property
    def totals(self) -> str:
        return totals(self.by_status, self.backlog)

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
        """For programs. `queued_labels` are those of all pending jobs, as they always were."""
        blocked = self.backlog.blocked
        return {
            "at": self.at,
            "node": self.node,
            "version": __version__,
            "scope": self.scope._asdict(),
            "counts": {status: len(count.jobs) for status, count in self.by_status.items()},
            "running": [_job(job) for job in self.running.jobs],
            "queued_labels": self.by_status[Status.PENDING].labels,
            "queued": self.backlog.queued.to_dict(),
            "blocked": {**blocked.to_dict(), "cannot_run": self.backlog.cannot_run},
            "unserved": self.backlog.unserved.to_dict(),
            "failed": [_job(job) for job in self.failed.jobs],
            "failed_reasons": self.failed.reasons,
            "findings": [
                {**finding.to_dict(), "check": answer.check.name}
                for answer in self.answers
                for finding in answer.findings
            ],
            "advice": self.advice_in_full,
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
    scope, look = scope or Scope(), Look(ground)
    checks = examine(ground, checks=AUDITED, first=look, **({"pause": pause} if pause else {}))
    by_status = counted(ground, scope)
    return Report(
        stamp(ground.registry.clock.now()),
        ground.registry.node,
        scope,
        by_status,
        backlog(look, by_status[Status.PENDING].jobs),
        tuple(checks),
    )


def totals(by_status: Mapping[Status, Count], backlog: Backlog) -> str:
    """How many run, wait and have failed, in one line."""
    counts = {
        "running": by_status[Status.RUNNING],
        "queued": backlog.queued,
        "blocked": backlog.blocked,
        "failed": by_status[Status.ERROR],
    }
    return ", ".join(f"{word} {len(count)}" for word, count in counts.items())


def backlog(look: Look, pending: Sequence[Summary]) -> Backlog:
    """Which of the pending jobs are blocked, by the look that the checks used."""
    if not pending:
        return Backlog()
    reasons, now = _reasons(look), look.registry.clock.now()
    queued: list[Summary] = []
    blocked: list[Summary] = []
    for job in pending:
        (blocked if reasons.is_held(job, now) else queued).append(job)
    return Backlog(
        Count(tuple(queued)),
        Count(tuple(blocked)),
        sum(not reasons.can_run(job) for job in blocked),
        Count(tuple(job for job in queued if reasons.is_unserved(job))),
    )


def _reasons(look: Look) -> BlockReasons:
    """Where the sessions cannot be read, without who serves a label; a finding reports that."""
    try:
        return look.reasons
    except (MamError, OSError):
        return block_reasons(look.registry, None, look.pending)


def counted(ground: Ground, scope: Scope) -> dict[Status, Count]:
    """The jobs that are meant, by status, every status there."""
    found: Sequence[Summary] = []
    try:
        which = Query(group=scope.group, agent_session=scope.agent_session)
        found = ground.registry.store.find(which)[0]
    except RegistryMissing:
        pass
    return {status: Count(tuple(job for job in found if job.status is status)) for status in Status}
