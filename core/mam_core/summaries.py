"""What a list shows of jobs, cheap enough for a hundred thousand of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

from mam_core.records import DEFAULT_TIMEOUT_SEC, Job, Reason, Status


class Summary(NamedTuple):
    """What a list shows of a job: everything but the body, cheap enough for 100,000 of them."""

    job_id: str
    status: Status
    agent: str
    agent_session: str
    group: str | None
    priority: int
    order: int
    attempt: int
    created_at: str
    updated_at: str
    started_at: str | None
    ended_at: str | None
    reason: Reason | None
    cancel_requested_at: str | None
    last_seq: int
    head: str  #: the beginning of the prompt
    node: str | None = None  #: the host of its last attempt
    not_before: float | None = None  #: seconds since 1970; infinite for one that nobody can read
    parents: str = ""  #: the ids of the jobs that it comes after, with spaces between
    timeout_sec: float = DEFAULT_TIMEOUT_SEC  #: of one attempt, by the wall clock

    @classmethod
    def of(cls, job: Job) -> Summary:
        return cls(
            job.job_id,
            job.status,
            job.agent,
            job.agent_session,
            job.group,
            job.priority,
            claim_order(job),
            job.attempt,
            job.created_at,
            job.updated_at,
            job.started_at,
            job.ended_at,
            job.reason,
            job.cancel_requested_at,
            job.last_seq,
            job.prompt[:HEAD_CHARS],
            job.node,
            moment_of(job.not_before),
            " ".join(job.after),
            kept_timeout(job.timeout_sec),
        )


HEAD_CHARS = 200
#: Some thirty thousand years.
_FOREVER_SEC = 1e12


class Unreadable(NamedTuple):
    """A file named like a record that is none; it costs one row, never the list."""

    job_id: str
    error: str

    def to_dict(self) -> dict[str, str]:
        return {"job_id": self.job_id, "status": "unreadable", "error": self.error}


def moment_of(text: str | None) -> float | None:
    """A stored moment; one that nobody can read never comes, rather than always having come."""
    if text is None:
        return None
    from mam_core.clock import parse_stamp

    try:
        return parse_stamp(text)
    except ValueError:
        return float("inf")


def kept_timeout(value: object) -> float:
    """A number that every store can keep; a stranger's may have hundreds of digits, or be none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return DEFAULT_TIMEOUT_SEC
    return float(min(value, _FOREVER_SEC))


def claim_order(job: Job) -> int:
    """Where a job stands among those of its priority.

    A record of another tool has no `order`; its time of creation stands in, on
    the same scale.
    """
    if job.order is not None:
        return job.order
    from mam_core.clock import parse_stamp

    try:
        return int(parse_stamp(job.created_at) * 1_000_000)
    except ValueError:
        return 0


class Memory(NamedTuple):
    """Bytes that an attempt takes up, all its processes together."""

    peak: int
    now: int | None = None  #: None: it has ended


class Used(NamedTuple):
    """What a running attempt has told of itself so far, in figures."""

    tokens: int | None = None
    cost: float | None = None
    progress: float | None = None  #: 0 to 1
    memory: Memory | None = None


def used_of(data: object) -> Used:
    """What one event tells; all of it is foreign, so all of it is looked at."""
    if not isinstance(data, Mapping):
        return NOTHING_TOLD
    tokens = data.get("tokens")
    parts = (tokens.get("input"), tokens.get("output")) if isinstance(tokens, Mapping) else [tokens]
    known = [part for part in map(_figure, parts) if part is not None]
    progress = _figure(data.get("progress"))
    if progress is not None:
        progress = None if progress > 100 else progress / 100 if progress > 1 else progress
    spent = int(sum(known)) if known else None
    return Used(spent, _figure(data.get("cost")), progress, memory_told(data))


NOTHING_TOLD = Used()
#: No machine has more; a stranger's number may have hundreds of digits.
_MOST_BYTES = 2**60


def memory_told(data: object) -> Memory | None:
    """From an event's data, which anybody may have written; None when it tells of none."""
    if not isinstance(data, Mapping) or not _is_size(peak := data.get("peak_memory")):
        return None
    now = data.get("memory")
    return Memory(peak, now if _is_size(now) else None)


def _is_size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST_BYTES


def _figure(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return float(value)
