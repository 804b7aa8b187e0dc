"""An event: one piece of news about a job, as it travels.

``{schema_version, seq, job_id, attempt, event, timestamp, detail, data}`` as
UTF-8 JSON, with `sig` where the job has a token. What comes in is foreign until
`parse` has looked at every key; what is wrong with it has a name, so that
droppers can count.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Any, NamedTuple

from mam_core import codec
from mam_core.errors import BadJobId, InvalidField, MamError, UnreadableRecord
from mam_core.events.signature import SIGNATURE_KEY, sign, verify
from mam_core.records import SCHEMA_VERSION, check_job_id

#: The longest payload that is sent or believed.
MAX_EVENT_BYTES = 1024 * 1024

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MAX_STAMP_CHARS = 40
_MAX_COUNT = 2**53


class EventName(StrEnum):
    """The names that mean something to us; the first five are the documents'."""

    STARTED = "started"
    PROGRESS = "progress"
    PERMISSION_REQUIRED = "permission_required"
    COMPLETED = "completed"
    ERROR = "error"
    QUEUED = "queued"
    CANCELLED = "cancelled"
    HEARTBEAT = "heartbeat"
    ARTIFACT = "artifact"
    LOG = "log"
    STATE = "state"  #: what the agent is doing now, as a `Sign` in `data`


#: After one of these the attempt has nothing more to say.
LAST_WORDS = frozenset({EventName.COMPLETED, EventName.ERROR, EventName.CANCELLED})


class Drop(StrEnum):
    """Why an incoming message is not believed."""

    OVERSIZED = "oversized"
    NOT_JSON = "not JSON"
    OTHER_SCHEMA = "other schema"
    MALFORMED = "malformed"
    UNKNOWN_JOB = "unknown job"
    MISPLACED = "wrong topic"  #: it tells of another job than the one whose topic it came on
    UNSIGNED = "unsigned"
    FORGED = "wrong signature"
    UNISSUED = "number not issued"  #: the record has never given out its number
    CONFLICT = "differs from the registry"  #: the registry has this number with other content
    REPLAYED = "repeated"


class BadEvent(MamError):
    """The message is no event."""

    title = "Bad event"

    def __init__(self, drop: Drop, message: str) -> None:
        super().__init__(message)
        self.drop = drop


class Event(NamedTuple):
    """What happened, to which attempt of which job; `seq` numbers the events of a job."""

    job_id: str
    attempt: int
    seq: int
    event: str  #: an `EventName`, or a word that another tool made
    timestamp: str  #: the sender's word, shown and never counted with
    detail: str = ""
    data: Any = None

    @property
    def is_last_word(self) -> bool:
        return self.event in LAST_WORDS

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "seq": self.seq,
            "job_id": self.job_id,
            "attempt": self.attempt,
            "event": str(self.event),
            "timestamp": self.timestamp,
            "detail": self.detail,
            "data": self.data if self.data is not None else {},
        }

    def encode(self, token: str | None) -> bytes:
        """The payload, signed with the job's token. Raises `InvalidField` for one that is too long.

        In ASCII: a lone surrogate in a detail has no other form that every reader can parse.
        """
        content = self.to_dict()
        if token:
            content[SIGNATURE_KEY] = sign(content, token)
        payload = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
        if len(payload) > MAX_EVENT_BYTES:
            raise InvalidField(
                f"the event has {len(payload):,} bytes: detail and data together may have 1 MB"
            )
        if codec.is_too_deep(payload):
            raise InvalidField(
                f"data is nested too deeply: an event has at most {codec.MAX_DEPTH} levels"
            )
        return payload


class Message(NamedTuple):
    """An event together with all that was sent, which its signature covers."""

    event: Event
    content: dict[str, Any]

    def is_signed(self) -> bool:
        return SIGNATURE_KEY in self.content

    def is_from(self, token: str | None) -> bool:
        """Somebody who knows the token sent it; a job without one asks for none."""
        return verify(self.content, token)


def parse(payload: bytes) -> Message:
    """The event in a payload from outside; `BadEvent` says what is wrong with it."""
    if len(payload) > MAX_EVENT_BYTES:
        raise BadEvent(Drop.OVERSIZED, f"it has {len(payload):,} bytes")
    try:
        content = codec.loads(payload)
    except UnreadableRecord as problem:
        raise BadEvent(Drop.NOT_JSON, problem.message) from None
    version = content.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise BadEvent(Drop.OTHER_SCHEMA, "it has another schema_version")
    return Message(_event(content), content)


def _event(content: dict[str, Any]) -> Event:
    try:
        return Event(
            job_id=check_job_id(content["job_id"]),
            # The original knows no attempts: its jobs have one.
            attempt=_count(content.get("attempt", 1)),
            seq=_count(content["seq"]),
            event=_name(content["event"]),
            timestamp=_text(content.get("timestamp") or "")[:_MAX_STAMP_CHARS],
            detail=_text(content.get("detail") or ""),
            data=content.get("data"),
        )
    except KeyError as problem:
        raise BadEvent(Drop.MALFORMED, f"it has no {problem.args[0]}") from None
    except (TypeError, ValueError, BadJobId) as problem:
        raise BadEvent(Drop.MALFORMED, f"it is malformed: {problem}") from None


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MAX_COUNT:
        raise ValueError(f"{value!r:.40} is no count")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"{value!r:.40} is no event name")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} is no text")
    return value
