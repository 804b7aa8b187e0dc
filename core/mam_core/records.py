"""The job record: what a job is, on disk and in memory.

A `Job` is frozen; a change makes a new one with `evolve`. The fifteen keys of
the registry document always stand first, ours follow, and keys that we do not
know are carried along untouched, so that a newer tool's fields survive us.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, NamedTuple

from mam_core.errors import BadJobId, BadStatus, UnreadableRecord

SCHEMA_VERSION = 1
DEFAULT_TIMEOUT_SEC = 3600
DEFAULT_IDLE_TIMEOUT_SEC = 120
MAX_PROMPT_BYTES = 1024 * 1024
REDACTED = "[redacted]"

_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def check_job_id(job_id: str) -> str:
    """The id itself, or `BadJobId`: called before a path is built from it."""
    if not isinstance(job_id, str) or not _JOB_ID.fullmatch(job_id):
        shown = repr(job_id[:40] + "…" if isinstance(job_id, str) and len(job_id) > 40 else job_id)
        raise BadJobId(f"{shown} is no job id: {BadJobId.__doc__}")
    return job_id


class Status(StrEnum):
    """The five statuses on disk; whatever else is shown is derived from evidence."""

    PENDING = "pending"  #: registered, nobody has claimed it
    RUNNING = "running"  #: claimed by a session
    COMPLETED = "completed"  #: ended, and its checks passed
    ERROR = "error"  #: ended badly; `reason` says how
    CANCELLED = "cancelled"  #: ended because a person asked for it

    @classmethod
    def parse(cls, text: str) -> Status:
        try:
            return cls(text)
        except ValueError:
            raise BadStatus(f"{text!r} is no status: {BadStatus.__doc__}") from None

    @property
    def is_ended(self) -> bool:
        return self in ENDED

    @property
    def is_live(self) -> bool:
        return self not in ENDED


ENDED = frozenset({Status.COMPLETED, Status.ERROR, Status.CANCELLED})

#: What the engine itself may do. A person's override (`status --set`) may do anything and is
#: audited as such.
TRANSITIONS: Mapping[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.RUNNING, Status.CANCELLED}),
    Status.RUNNING: frozenset({Status.COMPLETED, Status.ERROR, Status.CANCELLED, Status.PENDING}),
    Status.ERROR: frozenset({Status.PENDING}),
    Status.CANCELLED: frozenset({Status.PENDING}),
    Status.COMPLETED: frozenset(),
}


class Reason(StrEnum):
    """Why a job is in the state it is in; the free words stand in `detail`."""

    EXIT = "exit"  #: the agent's process ended with a non-zero code
    SIGNAL = "signal"  #: the agent's process was ended by a signal
    NOT_FOUND = "not found"  #: the agent's command does not exist
    AGENT = "agent"  #: the agent itself reported the error
    TIMEOUT = "timeout"
    IDLE_TIMEOUT = "idle timeout"
    OOM = "oom"
    LOST = "lost"  #: the agent or its host is gone
    CANCELLED = "cancelled"
    VALIDATION = "validation"  #: an artifact is missing or the validate command failed
    QUOTA = "quota"
    BUDGET = "budget"
    REFUSED = "refused"  #: the agent was not permitted to do what it needed
    OVERRIDE = "override"  #: a person set the status by hand
    OTHER = "other"  #: a word that another tool wrote


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the events of a job go."""

    host: str = "127.0.0.1"
    port: int = 1883
    tls: bool = False
    username: str | None = None
    password: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "port": self.port,
            "tls": self.tls,
            "username": self.username,
            "password": self.password,
            **self.extra,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Broker:
        broker: Broker = _build(cls, data, _BROKER_CHECKS)
        return broker


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's claim on time: gone when it is not renewed within `ttl_sec`.

    It is dated on the boot clock of its host, so that a step of the wall clock
    neither ends it early nor keeps it alive.
    """

    owner: str
    ttl_sec: float
    node: str = ""
    boot_id: str = ""
    since_boot: float = 0.0
    renewals: int = 0
    renewed_at: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "owner": self.owner,
            "ttl_sec": self.ttl_sec,
            "node": self.node,
            "boot_id": self.boot_id,
            "since_boot": self.since_boot,
            "renewals": self.renewals,
            "renewed_at": self.renewed_at,
            **self.extra,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Lease:
        lease: Lease = _build(cls, data, _LEASE_CHECKS)
        return lease


@dataclass(frozen=True, slots=True)
class Job:
    """One delegated job: prompt, agent, limits, artifacts, and where it stands."""

    # The fifteen keys of the registry document.
    job_id: str
    status: Status
    created_at: str = ""
    updated_at: str = ""
    prompt: str = ""
    agent: str = ""
    agent_session: str = ""
    broker: Broker = field(default_factory=Broker)
    topic_prefix: str = ""
    timeout_sec: float = DEFAULT_TIMEOUT_SEC
    idle_timeout_sec: float = DEFAULT_IDLE_TIMEOUT_SEC
    expected_artifacts: tuple[str, ...] = ()
    last_seq: int = 0
    auth_token: str | None = None
    schema_version: int = SCHEMA_VERSION
    # Ours, all additive.
    order: int | None = None  #: position among equals; microseconds at registration, always growing
    revision: int = 0  #: grows with every write of ours; ties a record to its audit lines
    attempt: int = 0  #: grows at every claim, never reused: the fence
    failures: int = 0  #: counts against `max_attempts`
    max_attempts: int = 1
    priority: int = 0
    group: str | None = None
    key: str | None = None
    after: tuple[str, ...] = ()
    not_before: str | None = None
    model: str | None = None
    workdir: str | None = None
    validate: str | None = None
    memory_max: int | None = None  #: bytes
    node: str | None = None
    pid: int | None = None
    lease: Lease | None = None
    started_at: str | None = None
    ended_at: str | None = None
    reason: Reason | None = None
    detail: str | None = None
    cancel_requested_at: str | None = None
    cancel_requested_by: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_live(self) -> bool:
        return self.status.is_live

    @property
    def is_ended(self) -> bool:
        return self.status.is_ended

    @property
    def is_supervised(self) -> bool:
        """A worker holds it by a lease; without one it is a script's, and its own timeouts rule."""
        return self.lease is not None

    @property
    def is_cancelling(self) -> bool:
        return self.status is Status.RUNNING and self.cancel_requested_at is not None

    @property
    def events_topic(self) -> str:
        return f"{self.topic_prefix}/events"

    def evolve(self, **changes: Any) -> Job:
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The record as it stands on disk: the document's keys, ours, then the unknown ones."""
        data: dict[str, Any] = {name: getattr(self, name) for name in DISK_ORDER}
        data["broker"] = self.broker.to_dict()
        if self.lease is not None:
            data["lease"] = self.lease.to_dict()
        data.update(self.extra)
        return data

    def redacted(self) -> dict[str, Any]:
        """`to_dict` with a marker in place of each secret: for history, tables and strangers."""
        data = self.to_dict()
        if data["auth_token"] is not None:
            data["auth_token"] = REDACTED
        if self.broker.password is not None:
            data["broker"]["password"] = REDACTED
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Job:
        """Raises `UnreadableRecord` that names the key which is wrong."""
        version = data.get("schema_version")
        if version != SCHEMA_VERSION or isinstance(version, bool):
            if version is None:
                raise UnreadableRecord("it is no job record: it has no schema_version")
            raise UnreadableRecord(
                f"its schema_version is {version!r:.40}; this version of mam knows {SCHEMA_VERSION}"
            )
        for name in ("job_id", "status"):
            if name not in data:
                raise UnreadableRecord(f"it is no job record: it has no {name}")
        job: Job = _build(cls, data, _JOB_CHECKS)
        if job.reason is Reason.OTHER and data["reason"] != Reason.OTHER:
            # Another tool's word: it is kept beside ours.
            return job.evolve(detail=": ".join(filter(None, (data["reason"], job.detail))))
        return job


_JR_KEYS = (
    "schema_version",
    "job_id",
    "status",
    "created_at",
    "updated_at",
    "prompt",
    "agent",
    "agent_session",
    "broker",
    "topic_prefix",
    "timeout_sec",
    "idle_timeout_sec",
    "expected_artifacts",
    "last_seq",
    "auth_token",
)
_KNOWN = tuple(f.name for f in fields(Job) if f.name != "extra")
DISK_ORDER = _JR_KEYS + tuple(name for name in _KNOWN if name not in _JR_KEYS)


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
        )


HEAD_CHARS = 200


class Unreadable(NamedTuple):
    """A file named like a record that is none; it costs one row, never the list."""

    job_id: str
    error: str

    def to_dict(self) -> dict[str, str]:
        return {"job_id": self.job_id, "status": "unreadable", "error": self.error}


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


# -- reading: one check per key, each answers the value or raises ----------------------------

_Check = Callable[[Any], Any]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("a whole number")
    return value


def _count(value: Any) -> int:
    if _whole(value) < 0:
        raise TypeError("a whole number, not negative")
    return int(value)


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        raise TypeError("a positive number")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a number")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise TypeError("a list of texts")
    return tuple(value)


def _status(value: Any) -> Status:
    try:
        return Status(value)
    except ValueError:
        raise TypeError("one of the five statuses") from None


def _reason(value: Any) -> Reason:
    try:
        return Reason(_text(value))
    except ValueError:
        return Reason.OTHER


def _job_id(value: Any) -> str:
    if not isinstance(value, str) or not _JOB_ID.fullmatch(value):
        raise TypeError("a job id")
    return value


def _mapping(build: Callable[[Mapping[str, Any]], Any]) -> _Check:
    def check(value: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError("an object")
        return build(value)

    return check


def _maybe(check: _Check) -> _Check:
    def optional(value: Any) -> Any:
        return None if value is None else check(value)

    return optional


_BROKER_CHECKS: dict[str, _Check] = {
    "host": _text,
    "port": _count,
    "tls": _flag,
    "username": _maybe(_text),
    "password": _maybe(_text),
}
_LEASE_CHECKS: dict[str, _Check] = {
    "owner": _text,
    "ttl_sec": _seconds,
    "node": _text,
    "boot_id": _text,
    "since_boot": _number,
    "renewals": _count,
    "renewed_at": _text,
}
_JOB_CHECKS: dict[str, _Check] = {
    "schema_version": _whole,
    "job_id": _job_id,
    "status": _status,
    "created_at": _text,
    "updated_at": _text,
    "prompt": _text,
    "agent": _text,
    "agent_session": _text,
    "broker": _mapping(Broker.from_dict),
    "topic_prefix": _text,
    "timeout_sec": _seconds,
    "idle_timeout_sec": _seconds,
    "expected_artifacts": _texts,
    "last_seq": _count,
    "auth_token": _maybe(_text),
    "order": _maybe(_whole),
    "revision": _count,
    "attempt": _count,
    "failures": _count,
    "max_attempts": _count,
    "priority": _whole,
    "group": _maybe(_text),
    "key": _maybe(_text),
    "after": _texts,
    "not_before": _maybe(_text),
    "model": _maybe(_text),
    "workdir": _maybe(_text),
    "validate": _maybe(_text),
    "memory_max": _maybe(_count),
    "node": _maybe(_text),
    "pid": _maybe(_whole),
    "lease": _maybe(_mapping(Lease.from_dict)),
    "started_at": _maybe(_text),
    "ended_at": _maybe(_text),
    "reason": _maybe(_reason),
    "detail": _maybe(_text),
    "cancel_requested_at": _maybe(_text),
    "cancel_requested_by": _maybe(_text),
}


def _build(cls: type[Any], data: Mapping[str, Any], checks: Mapping[str, _Check]) -> Any:
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in data.items():
        check = checks.get(name)
        if check is None:
            extra[name] = value
            continue
        try:
            known[name] = check(value)
        except TypeError as problem:
            raise UnreadableRecord(f"its {name} is not {problem}") from None
    try:
        return cls(**known, extra=extra)
    except TypeError:
        missing = next(name for name in checks if name not in known)
        raise UnreadableRecord(f"it has no {missing}") from None
