"""Attempts as bars over time: when each began and ended, how, and when it stood still.

A summary gives the last attempt of a job for nothing; the audit log gives all of them,
also of a job whose record is gone. A log is read once, and from there on by what is new.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from enum import StrEnum
from typing import NamedTuple

from mam_core.agents.states import moment
from mam_core.operations.bar_lines import Folding, Outcome, Wait
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.summaries import Summary

__all__ = ["Bar", "BarReader", "Dimension", "Outcome", "Wait", "bar_of"]

#: A log that grew by more than this since the last look is read anew.
_NEWS_BYTES = 4 * 1024 * 1024


class Dimension(StrEnum):
    """By what bars are put together."""

    SESSION = "session"
    NODE = "node"
    GROUP = "group"
    AGENT = "agent"


class Bar(NamedTuple):
    """One attempt. Empty texts: none, or not known."""

    job_id: str
    attempt: int
    agent: str
    session: str
    group: str
    node: str
    began_at: float
    ended_at: float | None  #: None: it runs
    outcome: Outcome
    reason: str = ""
    queued_at: float | None = None  #: since when it waited to be claimed, where that is known
    waits: tuple[Wait, ...] = ()  #: stretches in which its agent waited for a person
    tokens: int | None = None
    cost: float | None = None

    @property
    def is_running(self) -> bool:
        return self.ended_at is None

    @property
    def key(self) -> tuple[str, int]:
        return self.job_id, self.attempt

    @property
    def waiting_sec(self) -> float | None:
        """From the moment when it could be claimed until it was."""
        return None if self.queued_at is None else max(0.0, self.began_at - self.queued_at)

    @property
    def run_sec(self) -> float | None:
        return None if self.ended_at is None else max(0.0, self.ended_at - self.began_at)

    def then(self, at: float) -> Bar | None:
        """As it was at an earlier moment; None: it had not begun."""
        if self.began_at > at:
            return None
        if self.ended_at is not None and self.ended_at <= at:
            return self
        waits = (Wait(one.began_at, _before(one.ended_at, at)) for one in self.waits)
        return self._replace(
            ended_at=None,
            outcome=Outcome.RUNNING,
            reason="",
            waits=tuple(one for one in waits if one.began_at <= at),
            tokens=None,
            cost=None,
        )

    def under(self, dimension: Dimension) -> str:
        """The lane that it belongs to."""
        name: str = getattr(self, dimension)
        return name


def _before(moment: float | None, at: float) -> float | None:
    """None: it was still to come."""
    return moment if moment is not None and moment <= at else None


def bar_of(job: Summary) -> Bar | None:
    """The last attempt, as far as a summary tells; None when it tells of none."""
    began = moment(job.started_at)
    if not job.attempt or began is None or job.status is Status.PENDING:
        return None
    if job.status is Status.RUNNING:
        ended, outcome = None, Outcome.RUNNING
    else:
        ended, outcome = moment(job.ended_at), Outcome(job.status)
        ended = began if ended is None else max(began, ended)
    queued = moment(job.created_at) if job.attempt == 1 else None
    return Bar(
        job.job_id,
        job.attempt,
        job.agent,
        job.agent_session,
        job.group or "",
        job.node or "",
        began,
        ended,
        outcome,
        str(job.reason or ""),
        queued,
    )


class _Read(NamedTuple):
    until: int
    folding: Folding


class BarReader:
    """Reads logs, and remembers how far for jobs that run. For one thread at a time."""

    def __init__(self, registry: Registry) -> None:
        self._audit = registry.store.audit
        self._read: dict[str, _Read] = {}

    def read(self, job: Summary) -> tuple[Bar, ...]:
        """All attempts of a job, in order. Its record is right where the log has gaps."""
        folding = self._folded(job.job_id, keep=job.status is Status.RUNNING)
        bars = _bars(folding, job.job_id, job.agent, job.agent_session, job.group or "")
        return _completed(bars, job)

    def read_gone(self, job_id: str) -> tuple[Bar, ...]:
        """Those of a job whose record is gone: what was registered is in its log."""
        meta = self._audit.meta(job_id) or {}
        texts = [str(meta.get(name) or "") for name in ("agent", "agent_session", "group")]
        bars = _bars(self._folded(job_id, keep=False), job_id, *texts)
        return tuple(
            bar._replace(ended_at=bar.began_at, outcome=Outcome.UNKNOWN) if bar.is_running else bar
            for bar in bars
        )

    def gone(self, known: Container[str]) -> list[str]:
        """Jobs that have a log, and are not among those that are known; the newest log first."""
        return [job_id for job_id in reversed(self._audit.job_ids()) if job_id not in known]

    def forget(self, job_id: str) -> None:
        self._read.pop(job_id, None)

    def _folded(self, job_id: str, *, keep: bool) -> Folding:
        known = self._read.pop(job_id, None)
        if known is None:
            until, folding = 0, Folding()
            for raw in self._audit.lines(job_id):
                if raw.endswith(b"\n"):  # a torn end is set aside, and its place is written anew
                    until += len(raw)
                    folding.read(raw)
        else:
            until, lines = self._audit.news(job_id, known.until, _NEWS_BYTES)
            if until - known.until != sum(map(len, lines)) + len(lines):
                return self._folded(job_id, keep=keep)  # it is another log by now
            folding = known.folding
            for raw in lines:
                folding.read(raw)
        if keep:
            self._read[job_id] = _Read(until, folding)
        return folding


def _bars(folding: Folding, job_id: str, agent: str, session: str, group: str) -> tuple[Bar, ...]:
    return tuple(
        Bar(
            job_id,
            one.attempt,
            agent,
            session,
            group,
            one.node,
            one.began_at,
            one.ended_at,
            one.outcome,
            one.reason,
            one.queued_at,
            tuple(one.waits),
            one.tokens,
            one.cost,
        )
        for one in folding.stretches()
    )


def _completed(bars: Iterable[Bar], job: Summary) -> tuple[Bar, ...]:
    """The last one as the record has it, where the log missed its claim or its end."""
    found = {bar.attempt: bar for bar in bars}
    last = bar_of(job)
    if last is not None:
        known = found.get(last.attempt)
        if known is None:
            found[last.attempt] = last
        else:
            node = known.node or last.node
            if known.is_running != last.is_running:
                known = known._replace(
                    ended_at=last.ended_at, outcome=last.outcome, reason=last.reason
                )
            found[last.attempt] = known._replace(node=node)
    return tuple(_closed(bar, job) for _, bar in sorted(found.items()))


def _closed(bar: Bar, job: Summary) -> Bar:
    """Only the attempt that the record speaks of can be running."""
    if not bar.is_running or (job.status is Status.RUNNING and bar.attempt == job.attempt):
        return bar
    return bar._replace(ended_at=bar.began_at, outcome=Outcome.UNKNOWN)
