"""When a job that somebody follows is over, and how it ended.

The record decides. A last word (`completed`, `error`, `cancelled`) is a report
that the record bears out or corrects; only where nobody of ours keeps the
record, because a foreign tool runs the job, the word alone is believed. Time is
counted from the moment we began to listen and from when events came in; what
events say about their own time is not counted with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mam_core.events.event import Event, EventName
from mam_core.events.items import EventHeard, Item, JobChanged, Notice, NoticeKind, Origin
from mam_core.operations.ending import Ending, How, Limits, Tally
from mam_core.records import Job, Status
from mam_core.summaries import Unreadable

#: The record says that the job is over, and some of its events have not come: so long after the
#: last one they are not waited for any more. The feed looks for them in the registry meanwhile.
SETTLE_SEC = 10.0
#: A last word has come, and the record does not say so: a foreign tool may still write it.
BELIEF_SEC = 1.0
#: A record that is moved away and back again, as editors and `mv` do, was not gone.
GONE_SEC = 2.0
#: Clocks are looked at with a pause of so much for each job: 10,000 of them cost what one does.
_LOOK_SEC = 0.0001


class _Followed:
    """What is known about one job."""

    __slots__ = (
        "asks",
        "ended_at",
        "gone_at",
        "heard_at",
        "highest",
        "job",
        "last_word",
        "said_at",
        "tally",
    )

    def __init__(self, job: Job, now: float) -> None:
        self.job = job
        self.highest = job.last_seq  #: events up to here were told, or are older than we are
        self.heard_at = now
        self.asks: Event | None = None  #: the agent waits for a person, which is not idling
        self.last_word: Event | None = None
        self.said_at = 0.0
        self.ended_at: float | None = None
        self.gone_at: float | None = None
        self.tally = Tally()


class Endings:
    """Follows jobs to their ends. Is told every item of a feed, and asked now and then."""

    def __init__(
        self,
        jobs: Iterable[Job],
        limits: Limits,
        now: float,
        *,
        logged: Callable[[str], Status | None] = lambda _: None,
        hears: bool = True,
    ) -> None:
        """`logged` is what the audit log says about a job without a record; without `hears` no
        events are told, so that none are waited for."""
        self._limits = limits
        self._began = now
        self._logged = logged
        self._hears = hears
        self._left = {job.job_id: _Followed(job, now) for job in jobs}
        self._stirring: set[str] = set()  #: those about which something is to be decided
        self._clocks_at = now
        self._is_blind = False
        self._seen_since = now
        self.endings: dict[str, Ending] = {}
        self.tallies: dict[str, Tally] = {}
        for job in [each.job for each in self._left.values() if each.job.is_ended]:
            self._end(job.job_id, job.status, How.ALREADY, f"had ended already: {_end_of(job)}")

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._left or job_id in self.endings

    @property
    def left(self) -> int:
        """How many are still followed."""
        return len(self._left)

    def hear(self, item: Item) -> None:
        """Any item of the feed, also about jobs that are not followed."""
        if isinstance(item, Notice):
            self._note(item)
        elif isinstance(item, EventHeard):
            if followed := self._left.get(item.event.job_id):
                _hear_event(followed, item)
                self._stirring.add(item.event.job_id)
        elif followed := self._left.get(item.job_id):
            _hear_change(followed, item)
            self._stirring.add(item.job_id)

    def due(self, now: float) -> list[Ending]:
        """Those that are over by now."""
        before = len(self.endings)
        for job_id in list(self._stirring):
            followed = self._left.get(job_id)
            if followed is None or not self._look(job_id, followed, now):
                self._stirring.discard(job_id)
        if now >= self._clocks_at:
            for job_id, followed in list(self._left.items()):
                self._look_at_clock(job_id, followed, now)
            self._clocks_at = now + len(self._left) * _LOOK_SEC
        if self._left and all(self._is_gone(each, now) for each in self._left.values()):
            for job_id in list(self._left):
                words = "is gone: its record was removed before it ended"
                self._end(job_id, None, How.GONE, words)
        return list(self.endings.values())[before:]

    # -- inside ----------------------------------------------------------------------------

    def _note(self, notice: Notice) -> None:
        if notice.kind is NoticeKind.DIRECTORY_LOST:
            self._is_blind = True
        elif notice.kind is NoticeKind.DIRECTORY_BACK:
            self._is_blind, self._seen_since = False, notice.seen_at
        followed = self._left.get(notice.job_id or "")
        name = _COUNTED.get(notice.kind)
        if followed and name:
            tally = followed.tally
            followed.tally = tally._replace(**{name: getattr(tally, name) + notice.times})

    def _look(self, job_id: str, followed: _Followed, now: float) -> bool:
        """False when there is nothing to decide until something new is heard."""
        job, word = followed.job, followed.last_word
        if followed.ended_at is not None:
            # Of a job that was cleaned away nobody brings events any more.
            is_cleaned = followed.gone_at is not None and not self._is_blind
            has_all = followed.highest >= job.last_seq or not self._hears
            if (
                has_all
                or is_cleaned
                or now - max(followed.ended_at, followed.heard_at) > SETTLE_SEC
            ):
                self._end_by_record(followed)
            return True
        if followed.gone_at is not None and not self._is_blind:
            status = self._logged(job_id)
            if status is not None and status.is_ended:
                words = f"ended: {status}, says the audit log; its record is gone"
                self._end(job_id, status, How.REGISTRY, words)
        elif word and _is_believed(word, job) and now - followed.said_at > BELIEF_SEC:
            words = f"ended: {word.event}, by its event; its record still says {job.status}"
            self._end(job_id, Status(word.event), How.WORD, words)
        return bool(followed.gone_at or word)

    def _look_at_clock(self, job_id: str, followed: _Followed, now: float) -> None:
        if followed.ended_at is not None:
            return  # only its last events are waited for
        wall = self._limits.wall(followed.job)
        quiet = None if followed.asks else self._limits.quiet(followed.job)
        if wall is not None and now - self._began >= wall:
            self._end(job_id, None, How.TIMEOUT, f"timed out: it has not ended in {wall:g} s")
        elif quiet is not None and now - followed.heard_at >= quiet:
            self._end(job_id, None, How.IDLE, f"timed out: nothing was heard of it for {quiet:g} s")

    def _is_gone(self, followed: _Followed, now: float) -> bool:
        if followed.gone_at is None or followed.ended_at is not None or self._is_blind:
            return False
        return now - max(followed.gone_at, self._seen_since) > GONE_SEC

    def _end_by_record(self, followed: _Followed) -> None:
        job, word = followed.job, followed.last_word
        told = word is not None and word.event == str(job.status)
        how = How.EVENT if told else How.REGISTRY
        self._end(job.job_id, job.status, how, f"ended: {_end_of(job)}")

    def _end(self, job_id: str, status: Status | None, how: How, words: str) -> None:
        self.tallies[job_id] = self._left.pop(job_id).tally
        self.endings[job_id] = Ending(job_id, status, how, f"job {job_id} {words}")


#: Notices that count for a job.
_COUNTED = {
    NoticeKind.REPEAT: "repeated",
    NoticeKind.DROPPED: "dropped",
    NoticeKind.LATE: "late",
}


def _hear_event(followed: _Followed, heard: EventHeard) -> None:
    event, tally = heard.event, followed.tally
    followed.tally = tally._replace(
        events=tally.events + 1,
        filled=tally.filled + (heard.origin is Origin.REGISTRY),
        missing=heard.missing,
    )
    followed.highest = max(followed.highest, event.seq)
    followed.heard_at = max(followed.heard_at, heard.seen_at)
    if "attempt" not in heard.content:  # the original knows none: it means the one there is
        event = event._replace(attempt=max(event.attempt, followed.job.attempt))
    followed.asks = event if event.event == EventName.PERMISSION_REQUIRED else None
    word = followed.last_word
    if event.is_last_word and (word is None or word.attempt < event.attempt):
        followed.last_word, followed.said_at = event, heard.seen_at


def _hear_change(followed: _Followed, changed: JobChanged) -> None:
    job = changed.job
    if job is None:
        followed.gone_at = followed.gone_at or changed.seen_at
        return
    followed.gone_at = None
    if isinstance(job, Unreadable):
        return  # said by whoever shows the items; the last one that could be read still counts
    before, followed.job = followed.job, job
    if (job.status, job.attempt) != (before.status, before.attempt):
        followed.heard_at = max(followed.heard_at, changed.seen_at)
    if followed.last_word and followed.last_word.attempt < job.attempt:
        followed.last_word = None
    if followed.asks and followed.asks.attempt < job.attempt:
        followed.asks = None
    if followed.ended_at is None and job.is_ended:
        followed.ended_at = changed.seen_at
    elif job.is_live:
        followed.ended_at = None  # a person took it back at once


def _is_believed(word: Event, job: Job) -> bool:
    """The word of a job that no worker holds, about the attempt that the record knows.

    One that is pending again has been taken back after that word, and goes on.
    """
    if job.is_supervised or word.attempt < job.attempt:
        return False
    return job.status is Status.RUNNING or job.attempt == 0


def _end_of(job: Job) -> str:
    why = ": ".join(filter(None, (job.reason, job.detail)))
    return f"{job.status} ({why})" if why else str(job.status)
