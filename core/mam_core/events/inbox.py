"""The inbox: which messages are believed, and which numbers of a job's events have come.

Whatever arrives is foreign. It is believed when it is an event, of a job that
we know, on that job's own topic, signed where the job has a token, with a number
that the record has issued and the content that the registry has under it, and
not told before. All else is counted and dropped; nothing here ever makes or
changes a record. A job numbers its events across attempts, so an event's number
says whether it is a repeat, and which ones before it are missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from mam_core.events.event import BadEvent, Drop, Event, Message, parse
from mam_core.events.numbers import Numbers
from mam_core.records import Job

#: Of so many jobs that are gone it is remembered which events were told.
_MAX_GONE = 1_000


class Dropped(NamedTuple):
    """A message that is not passed on, and why."""

    drop: Drop
    job_id: str | None  #: the job that it claims to tell of, where that job exists
    why: str
    expected: bool = False  #: no repeat: it was only read from the registry before it came


class _Row:
    """What is known about the events of one job."""

    __slots__ = ("came", "filled", "last_seq", "start")

    def __init__(self, start: int) -> None:
        self.start = start  #: up to here they happened before we began: not missed, if not heard
        self.last_seq = 0  #: how far the record says they go
        self.came = Numbers()
        self.filled: Numbers | None = None


class Inbox:
    """Takes messages, answers with those that are news, in two steps.

    `judge` needs the record alone; `believe` needs the registry's copy of the event, which the
    caller reads for many messages at once. `lookup` reads a job's record. `begin` says, when a
    job's first event comes, up to which number its events are older than we are; `history`
    which of a signed job's events had been told before we began, so that a recorded message
    cannot be played to a listener who is new.
    """

    def __init__(
        self,
        lookup: Callable[[str], Job | None],
        *,
        begin: Callable[[Job], int] = lambda _: 0,
        history: Callable[[Job], Iterable[int]] = lambda _: (),
    ) -> None:
        self._lookup = lookup
        self._begin = begin
        self._history = history
        self._rows: dict[str, _Row] = {}
        self._gone: dict[str, _Row] = {}  #: of jobs without a record: they may come back
        self.dropped: Counter[Drop] = Counter()

    def judge(self, topic: str, payload: bytes) -> Message | Dropped:
        """The message, when the job's record does not contradict it."""
        return self._counted(self._judge(topic, payload))

    def believe(self, message: Message, job: Job, kept: Message | None) -> Message | Dropped:
        """The message, when it is news; `kept` is what the registry has under its number.

        It has nothing where another program took the number and publishes by itself.
        """
        return self._counted(self._believe(message, job, kept))

    def is_newest(self, message: Message, job: Job) -> bool:
        """No event of this number or a later one has come, nor happened before we began."""
        row = self._row(job)
        return message.event.seq > max(row.start, row.came.highest)

    def has_come(self, message: Message, job: Job) -> bool:
        return message.event.seq in self._row(job).came

    def _counted(self, answer: Message | Dropped) -> Message | Dropped:
        if isinstance(answer, Dropped) and not answer.expected:
            self.dropped[answer.drop] += 1
        return answer

    def _judge(self, topic: str, payload: bytes) -> Message | Dropped:
        try:
            message = parse(payload)
        except BadEvent as problem:
            return Dropped(problem.drop, None, problem.message)
        event = message.event
        job = self._lookup(event.job_id)
        if job is None:
            why = f"there is no job {event.job_id}"
            return Dropped(Drop.UNKNOWN_JOB, None, why, self._was_read(event))
        job_id = job.job_id
        if topic != job.events_topic:
            return Dropped(Drop.MISPLACED, job_id, "it came on another topic than the job's")
        if not message.is_from(job.auth_token):
            if message.is_signed():
                return Dropped(Drop.FORGED, job_id, "its signature is not the job's")
            return Dropped(Drop.UNSIGNED, job_id, "it is not signed, and the job has a token")
        if not 0 < event.seq <= job.last_seq:
            why = f"event {event.seq}, but the registry has issued only {job.last_seq}"
            return Dropped(Drop.UNISSUED, job_id, why)
        return message

    def _believe(self, message: Message, job: Job, kept: Message | None) -> Message | Dropped:
        job_id, seq = job.job_id, message.event.seq
        row = self._row(job)
        if kept is not None and kept.content != message.content:
            why = f"the registry has another event {seq}"
            return Dropped(Drop.CONFLICT, job_id, why)
        if row.came.add(seq):
            return message
        expected = row.filled is not None and seq in row.filled
        return Dropped(Drop.REPLAYED, job_id, f"event {seq} was told before", expected)

    # -- what the registry says ------------------------------------------------------------

    def recorded(self, job: Job) -> None:
        """The record has been read: how far its numbers go.

        Where they went back, somebody began the job anew, and its numbers come again.
        """
        if job.last_seq == 0 and job.job_id not in self._rows:
            return
        row = self._row(job)
        if job.last_seq < row.last_seq:
            row.came.cut(job.last_seq)
            row.start = min(row.start, job.last_seq)
            if row.filled is not None:
                row.filled.cut(job.last_seq)
        row.last_seq = job.last_seq

    def known_before(self, job_id: str, seqs: Iterable[int]) -> None:
        """These events are old news: dropped when they come."""
        row = self._rows.setdefault(job_id, _Row(0))
        for seq in seqs:
            row.came.add(seq)

    def begun(self, job_id: str, start: int) -> int:
        """A job whose events up to `start` are older than we are; up to which one all have come."""
        row = self._known(job_id) or self._rows.setdefault(job_id, _Row(start))
        upto = max(row.came.highest, row.start) + 1
        return next(row.came.gaps(row.start, upto))[0] - 1

    def filled(self, job_id: str, seq: int) -> bool:
        """An event was read from the registry; False when it has come in the meantime."""
        row = self._rows.setdefault(job_id, _Row(0))
        if not row.came.add(seq):
            return False
        if row.filled is None:
            row.filled = Numbers()
        row.filled.add(seq)
        return True

    def forget(self, job_id: str) -> None:
        """The job is gone from the registry. Should it come back, what was told is not news."""
        row = self._rows.pop(job_id, None)
        if row is not None:
            self._gone[job_id] = row
            if len(self._gone) > _MAX_GONE:
                del self._gone[next(iter(self._gone))]

    # -- gaps ------------------------------------------------------------------------------

    def missing(self, job_id: str, upto: int, limit: int, after: int = 0) -> list[int]:
        """The numbers up to this one that have not come, the first so many of them."""
        row = self._rows.get(job_id)
        if row is None:
            return []
        found: list[int] = []
        for low, high in row.came.gaps(max(row.start, after), upto):
            found += range(low, min(high + 1, low + limit - len(found)))
            if len(found) >= limit:
                break
        return found

    def unheard_before(self, job_id: str, seq: int) -> int:
        """How many numbers below this one have not come."""
        row = self._rows.get(job_id)
        if row is None:
            return 0
        return sum(high - low + 1 for low, high in row.came.gaps(row.start, seq - 1))

    def highest(self, job_id: str) -> int:
        """The highest number that has come; 0 when none has."""
        row = self._rows.get(job_id)
        return row.came.highest if row else 0

    def _was_read(self, event: Event) -> bool:
        """By a message that came when its job was cleaned away, and was read before it came."""
        row = self._gone.get(event.job_id)
        return row is not None and row.filled is not None and event.seq in row.filled

    def _known(self, job_id: str) -> _Row | None:
        row = self._gone.pop(job_id, None)
        if row is not None:
            self._rows[job_id] = row  # it has come back
        return self._rows.get(job_id)

    def _row(self, job: Job) -> _Row:
        row = self._known(job.job_id)
        if row is None:
            row = self._rows[job.job_id] = _Row(self._begin(job))
            row.last_seq = job.last_seq
            if job.auth_token is not None:
                self.known_before(job.job_id, self._history(job))
        return row
