"""What a feed tells: a job changed, an event was heard, something about the feed itself.

`seen_at` is `time.monotonic()` at the moment when the news reached this
process, so that whoever shows an item can say how old it is.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from mam_core.events.event import Event
from mam_core.records import Job
from mam_core.summaries import Unreadable


class Origin(StrEnum):
    """Who told it first."""

    DIRECTORY = "directory"  #: the watch on the registry folder
    BROKER = "broker"  #: a message
    RESCAN = "rescan"  #: a look at all records
    REGISTRY = "registry"  #: an event that no message brought: read from outbox or audit log


class NoticeKind(StrEnum):
    """What can be said about the feed itself."""

    BROKER_UP = "broker up"
    BROKER_DOWN = "broker down"
    NO_BROKER = "no broker"
    GAP = "gap"  #: numbers of a job's events are missing
    FILLED = "filled"  #: what was missing has been read from the registry
    LATE = "late"  #: an event came after its successor
    REPEAT = "repeat"  #: an event came twice, and is told once
    DROPPED = "dropped"  #: a message was not believed
    DIRECTORY_LOST = "directory lost"
    DIRECTORY_BACK = "directory back"
    PUBLIC_BROKER = "public broker"  #: anybody can read and forge what we listen to
    OVERFLOW = "overflow"  #: more came than could be kept


class JobChanged(NamedTuple):
    """A record is new, different or gone (`job` is None)."""

    job_id: str
    job: Job | Unreadable | None
    origin: Origin
    seen_at: float


class EventHeard(NamedTuple):
    """An event, told once; `content` is all that was sent, with its signature."""

    event: Event
    content: dict[str, Any]
    origin: Origin
    seen_at: float
    missing: int  #: how many of the job's earlier events are still unknown


class Notice(NamedTuple):
    """Something to show beside the jobs: in a status bar, or on stderr."""

    kind: NoticeKind
    job_id: str | None
    text: str
    seen_at: float
    times: int = 1  #: how many of its kind it speaks of
    reason: str = ""  #: of a notice about one dropped message: why it was dropped


Item = JobChanged | EventHeard | Notice
