"""How a job ended for somebody who followed it, how long he waits, and what he counted."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from mam_core.records import Job, Status


class How(StrEnum):
    """By what we know that a job is over for us."""

    EVENT = "event"  #: its last word was heard, and the record says the same
    WORD = "word"  #: its last word was heard, and the record is nobody's who would end it
    REGISTRY = "registry"  #: no event said so: a person or a sweep ended it
    ALREADY = "already"  #: it had ended before we began
    TIMEOUT = "timeout"
    IDLE = "idle timeout"
    GONE = "gone"  #: there is no record any more, and nothing else to wait for


class Ending(NamedTuple):
    """How a job ended, or why it is not followed any longer."""

    job_id: str
    status: Status | None  #: None: it has not ended, as far as is known
    how: How
    words: str  #: a sentence that names the job

    @property
    def is_timeout(self) -> bool:
        return self.how in (How.TIMEOUT, How.IDLE)


class Limits(NamedTuple):
    """What a person said about time; a job's own limits count where nothing was said."""

    timeout: float | None = None
    idle: float | None = None
    by_record: bool = True  #: False: without a word from the person there is no limit

    def wall(self, job: Job) -> float | None:
        return self.timeout or (job.timeout_sec if self.by_record else None)

    def quiet(self, job: Job) -> float | None:
        """Who holds a job by a lease sees its agent, and ends it himself when that is idle."""
        if self.idle is not None or not self.by_record or job.is_supervised:
            return self.idle
        return job.idle_timeout_sec


class Tally(NamedTuple):
    """What came in about a job."""

    events: int = 0
    filled: int = 0  #: of these, read from the registry
    missing: int = 0  #: numbers that never came
    repeated: int = 0
    dropped: int = 0
    late: int = 0

    @property
    def is_odd(self) -> bool:
        return any(self[1:])
