"""What the board knows of one job: its summary, and what was heard of it while it ran.

There may be 100,000 of them in memory, so the live part exists only for jobs of
which something was heard.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mam_core.board.why import BlockReasons
from mam_core.limits import is_doubtful
from mam_core.records import Status
from mam_core.summaries import Summary, Unreadable
from mam_tui.faces import FACES, Face, face_of

STATUS_WORDS = {
    Status.PENDING: "queued",
    Status.RUNNING: "running",
    Status.COMPLETED: "completed",
    Status.ERROR: "error",
    Status.CANCELLED: "cancelled",
}
STATUS_FACES = {status: face_of(word) for status, word in STATUS_WORDS.items()}


class Live(NamedTuple):
    """News of a job: what its agent does, and the newest of what it told."""

    state: str = ""  #: the shown state's word; empty: nothing better than the status is known
    words: str = ""  #: why, or the question that it asks
    channel: str = ""
    at: float = 0.0  #: since when, in seconds since 1970
    event: str = ""
    detail: str = ""
    heard_at: float = 0.0  #: of the newest event
    progress: float | None = None  #: 0 to 1
    tokens: int | None = None
    cost: float | None = None
    need: str = ""  #: what it needs a person for; empty: nothing
    limit: str = ""  #: the `Limit` that ends it next; empty: not known
    ends_at: float = 0.0  #: when that is
    memory: int | None = None  #: bytes that it takes up, as was told last; None: it has ended
    peak_memory: int | None = None


NO_NEWS = Live()


class Row:
    """One line of the board; changed in place, since its identity is the job's."""

    __slots__ = ("held", "job_id", "key", "live", "reasons", "summary", "trouble")

    def __init__(self, told: Summary | Unreadable, reasons: BlockReasons | None = None) -> None:
        self.job_id = told.job_id
        self.summary: Summary | None = None
        self.trouble = ""  #: why the record cannot be read
        self.live = NO_NEWS
        self.key: Any = None  #: its place in the order of the view
        self.held = False  #: it is pending, and something keeps it from being claimed
        self.reasons = reasons  #: what knows why; None: nobody here does
        self.tell(told)

    def tell(self, told: Summary | Unreadable) -> None:
        """The record is this now."""
        if isinstance(told, Unreadable):
            self.summary, self.trouble = None, told.error
            return
        if self.summary is not None and told.attempt != self.summary.attempt:
            self.live = NO_NEWS  # an old attempt's news is never shown as the current one's
        self.summary, self.trouble = told, ""

    @property
    def word(self) -> str:
        """The shown state."""
        summary = self.summary
        if summary is None:
            return "unreadable"
        if summary.status is Status.RUNNING:
            if summary.cancel_requested_at is not None:
                return "cancelling"
            return self.live.state or "running"
        if self.held:
            return "blocked"
        return STATUS_WORDS[summary.status]

    def why(self, now: float) -> str:
        """What a pending job waits for, or lacks, in few words; made when a line is drawn."""
        if self.reasons is None or self.summary is None:
            return ""
        return self.reasons.why(self.summary, now).short

    @property
    def order(self) -> int:
        """When it was registered, among all."""
        return self.summary.order if self.summary is not None else 0

    @property
    def face(self) -> Face:
        word = self.word
        return FACES.get(word) or face_of(word)

    @property
    def seen_at(self) -> float:
        """When anything was known of it last; 0 for never."""
        return max(self.live.at, self.live.heard_at)

    def is_doubtful(self, now: float) -> bool:
        """What it is shown to do is a guess: its witness is weak or old."""
        live = self.live
        return self.is_running and is_doubtful(
            self.word, live.channel, live.limit, self.seen_at, now
        )

    @property
    def is_live(self) -> bool:
        return self.summary is not None and self.summary.status.is_live

    @property
    def is_pending(self) -> bool:
        return self.summary is not None and self.summary.status is Status.PENDING

    @property
    def is_running(self) -> bool:
        return self.summary is not None and self.summary.status is Status.RUNNING
