"""The job record: what a job is, on disk and in memory.

A `Job` is frozen; a change makes a new one with `evolve`. The fifteen keys of
the registry document always stand first, ours follow, and keys that we do not
know are carried along untouched, so that a newer tool's fields survive us.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from os.path import join, normpath
from typing import TYPE_CHECKING, Any

from mam_core.errors import BadJobId, BadStatus, UnreadableRecord
from mam_core.frozen import frozen
from mam_core.record_checks import (
    COUNT,
    POSITIVE,
    TEXT,
    TEXTS,
    WHOLE,
    Kind,
    checked,
)
from mam_core.record_parts import NOTHING, Broker, Lease, MemoryCap

if TYPE_CHECKING:
    from mam_core.messages import Message

SCHEMA_VERSION = 1
DEFAULT_TIMEOUT_SEC = 3600
DEFAULT_IDLE_TIMEOUT_SEC = 120
#: How long an open tool call may hold the idle clock.
DEFAULT_TOOL_TIMEOUT_SEC = 1800
MAX_PROMPT_BYTES = 1024 * 1024
REDACTED = "[redacted]"

_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def check_job_id(job_id: str) -> str:
    """The id itself, or `BadJobId`: called before a path is built from it."""
    if not isinstance(job_id, str) or not _JOB_ID.fullmatch(job_id):
        shown = repr(job_id[:40] + "…" if isinstance(job_id, str) and len(job_id) > 40 else job_id)
        raise BadJobId(
            f"{shown} is no job id: it must be a letter or digit and then at most 63 letters, "
            "digits, '_' or '-'"
        )
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
            words = "say pending, running, completed, error or cancelled"
            raise BadStatus(f"{text!r} is no status: {words}") from None

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
    STOPPED = "worker stopped"  #: its worker was asked to end, and handed it back
    CANCELLED = "cancelled"
    VALIDATION = "validation"  #: an artifact is missing or the validate command failed
    QUOTA = "quota"
    BUDGET = "budget"
    REFUSED = "refused"  #: the agent was not permitted to do what it needed
    OVERRIDE = "override"  #: a person set the status by hand
    EDITED = "edited outside"  #: another tool wrote the status, or what `completed` depends on
    OTHER = "other"  #: a word that another tool wrote


@frozen
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
    broker: Broker = Broker()
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
    losses: int = 0  #: attempts lost in a row; bounded, so that no job goes round for ever
    quota_hits: int = 0  #: attempts that met a usage limit in a row; each waits longer
    priority: int = 0
    group: str | None = None
    key: str | None = None
    after: tuple[str, ...] = ()
    not_before: str | None = None
    model: str | None = None
    workdir: str | None = None
    validate: str | None = None
    memory_max: int | None = None  #: bytes
    max_cost: float | None = None  #: US dollars that one attempt may cost
    max_tokens: int | None = None  #: tokens that one attempt may use
    resume: str | None = None  #: the agent's own session that the attempt is to take up
    agent_session_id: str | None = None  #: the agent's own session that the last attempt was in
    node: str | None = None
    pid: int | None = None
    lease: Lease | None = None
    memory_cap: MemoryCap | None = None  #: of the last attempt
    started_at: str | None = None
    ended_at: str | None = None
    reason: Reason | None = None
    detail: str | None = None
    cancel_requested_at: str | None = None
    cancel_requested_by: str | None = None
    messages: tuple[Message, ...] = ()  #: to the agent, from a person
    check_files: Mapping[str, str] | None = None  #: digests of the scripts that `validate` runs
    left_behind: str | None = None  #: what its last attempt left in its folder, once it has ended
    extra: Mapping[str, Any] = NOTHING
    is_edited: bool = False  #: not on disk: another tool wrote it since our last write

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
    def has_secrets(self) -> bool:
        return self.auth_token is not None or self.broker.password is not None

    @property
    def artifact_paths(self) -> tuple[str, ...]:
        """Where its artifacts will stand; two live jobs must not write the same file."""
        if self.workdir is None:
            return ()
        return tuple(normpath(join(self.workdir, name)) for name in self.expected_artifacts)

    @property
    def events_topic(self) -> str:
        return f"{self.topic_prefix}/events"

    def evolve(self, **changes: Any) -> Job:
        """A copy with these fields."""
        if unknown := changes.keys() - self.__dict__.keys():
            raise TypeError(f"a job has no field {min(unknown)!r}")
        return _make(self.__dict__ | changes)

    def to_dict(self) -> dict[str, Any]:
        """The record as it stands on disk: the document's keys, ours, then the unknown ones."""
        mine = self.__dict__
        data: dict[str, Any] = {name: mine[name] for name in DISK_ORDER}
        data["broker"] = self.broker.to_dict()
        if self.lease is not None:
            data["lease"] = self.lease.to_dict()
        if self.memory_cap is not None:
            data["memory_cap"] = self.memory_cap.to_dict()
        data["messages"] = [message.to_dict() for message in self.messages]
        data[CHECKSUM] = checksum(data)
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
        known, extra = checked(data, _JOB_KINDS)
        if CHECKSUM in extra:
            extra = {name: value for name, value in extra.items() if name != CHECKSUM}
        job = _make(DEFAULTS | known | {"extra": extra})
        if job.reason is Reason.OTHER and data["reason"] != Reason.OTHER:
            # Another tool's word: it is kept beside ours.
            job = job.evolve(detail=": ".join(filter(None, (data["reason"], job.detail))))
        if data.get(CHECKSUM, "") not in ("", checksum(data)):
            return job.evolve(reason=Reason.EDITED, is_edited=True)
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
#: What a new job has where nobody said anything.
DEFAULTS: dict[str, Any] = Job(job_id="", status=Status.PENDING).__dict__
DISK_ORDER = _JR_KEYS + tuple(
    name for name in DEFAULTS if name not in (*_JR_KEYS, "extra", "is_edited")
)


#: A record that lacks it is another tool's from its beginning.
CHECKSUM = "checksum"
_CHECKED = ("status", "reason", "attempt", "ended_at", "agent", "workdir", "validate")


def checksum(data: Mapping[str, Any]) -> str:
    """Of what says how a job stands and what it must keep. It finds careless edits: whoever wants
    to can compute it."""
    words = [str(data.get(name)) for name in _CHECKED]
    words += map(str, data.get("expected_artifacts") or ())
    whole = "\0".join(words).encode("utf-8", "surrogatepass")
    # No module has to be loaded for this, and claims are to start fast.
    return f"{int.from_bytes(whole, 'big') % _PRIME:016x}"


_PRIME = 2**61 - 1


def _make(values: dict[str, Any]) -> Job:
    """A job from all of its fields at once: the generated `__init__` sets forty one by one."""
    job = object.__new__(Job)
    job.__dict__.update(values)
    return job


# -- reading ---------------------------------------------------------------------------------


def _status(value: Any) -> Status:
    try:
        return Status(value)
    except ValueError:
        raise TypeError from None


def _reason(value: Any) -> Reason:
    try:
        return Reason(value)
    except ValueError:
        return Reason.OTHER


def _job_id(value: Any) -> str:
    if not _JOB_ID.fullmatch(value):
        raise TypeError
    return str(value)


def _messages(value: Any) -> tuple[Message, ...]:
    """Hardly any job has some, and a claim should not pay for what it does not meet."""
    if not value:
        return ()
    from mam_core.messages import Message

    return tuple(map(Message.from_dict, value))


_OBJECT = frozenset({dict})


def _texts_by_name(value: dict[str, Any]) -> dict[str, str]:
    if not all(isinstance(text, str) for text in value.values()):
        raise TypeError
    return value


_JOB_KINDS: dict[str, Kind] = {
    "schema_version": WHOLE,
    "job_id": Kind("a job id", frozenset({str}), _job_id),
    "status": Kind("one of the five statuses", frozenset({str}), _status),
    "created_at": TEXT,
    "updated_at": TEXT,
    "prompt": TEXT,
    "agent": TEXT,
    "agent_session": TEXT,
    "broker": Kind("an object", _OBJECT, Broker.from_dict),
    "topic_prefix": TEXT,
    "timeout_sec": POSITIVE,
    "idle_timeout_sec": POSITIVE,
    "expected_artifacts": TEXTS,
    "last_seq": COUNT,
    "auth_token": TEXT.or_null(),
    "order": WHOLE.or_null(),
    "revision": COUNT,
    "attempt": COUNT,
    "failures": COUNT,
    "max_attempts": COUNT,
    "losses": COUNT,
    "quota_hits": COUNT,
    "priority": WHOLE,
    "group": TEXT.or_null(),
    "key": TEXT.or_null(),
    "after": TEXTS,
    "not_before": TEXT.or_null(),
    "model": TEXT.or_null(),
    "workdir": TEXT.or_null(),
    "validate": TEXT.or_null(),
    "memory_max": COUNT.or_null(),
    "max_cost": POSITIVE.or_null(),
    "max_tokens": COUNT.or_null(),
    "resume": TEXT.or_null(),
    "agent_session_id": TEXT.or_null(),
    "node": TEXT.or_null(),
    "pid": WHOLE.or_null(),
    "lease": Kind("an object", _OBJECT, Lease.from_dict).or_null(),
    "memory_cap": Kind("an object", _OBJECT, MemoryCap.from_dict).or_null(),
    "started_at": TEXT.or_null(),
    "ended_at": TEXT.or_null(),
    "reason": Kind("a text", frozenset({str}), _reason).or_null(),
    "detail": TEXT.or_null(),
    "cancel_requested_at": TEXT.or_null(),
    "cancel_requested_by": TEXT.or_null(),
    "check_files": Kind("an object of texts", _OBJECT, _texts_by_name).or_null(),
    "left_behind": TEXT.or_null(),
    "messages": Kind("a list of messages", frozenset({list, tuple}), _messages),
}
