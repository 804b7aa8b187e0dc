"""A job's life as chapters: each attempt by itself, and what happened before, between and after.

Made from the audit log alone, so that it is there after the record is gone. What an
old attempt ended with belongs to that attempt's chapter and to no other: nobody who
reads it can take an old error for the present one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from mam_core.agents.hearing import payload_of
from mam_core.audit import AuditEvent
from mam_core.clock import parse_stamp
from mam_core.errors import MamError
from mam_core.events.event import Message
from mam_core.events.missed import posted
from mam_core.operations.logs import history
from mam_core.operations.moments import Moment, is_shown, moment
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.replay.folding import said_at, seconds

#: Of one chapter, so many moments are kept: the first and the newest.
_MOST = 400


class Chapter(NamedTuple):
    """One attempt, or (attempt 0) what lay before the first, between two, or after the last."""

    attempt: int
    after: int  #: for what is no attempt: the one that it follows
    began_at: float | None
    ended_at: float | None
    outcome: str  #: how it ended, "running", or empty where no end is logged
    reason: str
    detail: str
    moments: tuple[Moment, ...]
    left_out: int  #: moments between the first and the newest, when there are too many
    events: Mapping[str, int]  #: how many events of which name it told
    facts: Mapping[str, Any]  #: of its end: exit code, tokens, cost, memory

    @property
    def elapsed_sec(self) -> float | None:
        if self.began_at is None or self.ended_at is None:
            return None
        return max(0.0, self.ended_at - self.began_at)


class Timeline(NamedTuple):
    """All chapters, the oldest first; `current` is the attempt that the record speaks of."""

    job_id: str
    current: int
    status: Status | None  #: None: the record is gone or cannot be read
    chapters: tuple[Chapter, ...]


def timeline(registry: Registry, job_id: str, at: float | None = None) -> Timeline:
    """`at` leaves out what was not known at that moment.

    Raises `JobNotFound` for a job that is neither logged nor registered.
    """
    chapters = _Chapters()
    last = 0
    for line in history(registry, job_id):
        last = max(last, _number(line.get("seq")))
        if at is None or _known_at(line) <= at:
            chapters.read(line)
    for _, message in posted(registry.store, {job_id: last}):  # no broker has taken them yet
        line = _as_line(message)
        if at is None or _known_at(line) <= at:
            chapters.read(line)
    if at is not None:
        return chapters.told_then(job_id)
    try:
        job = registry.get(job_id)
    except MamError:
        return Timeline(job_id, 0, None, chapters.told())
    if job.attempt:
        # The log is best effort: the record knows of an attempt whose claim it may have missed.
        chapters.know(job.attempt, _seconds(job.started_at))
        if job.status is Status.RUNNING:
            chapters.of(job.attempt).outcome = str(Status.RUNNING)
    return Timeline(job_id, job.attempt, job.status, chapters.told())


class _Open:
    """A chapter while it is read."""

    def __init__(self, attempt: int, after: int, began_at: float | None) -> None:
        self.attempt = attempt
        self.after = after
        self.began_at = began_at
        self.ended_at: float | None = None
        self.outcome = self.reason = self.detail = ""
        self.moments: list[Moment] = []
        self.left_out = 0
        self.events: Counter[str] = Counter()
        self.facts: dict[str, Any] = {}

    def add(self, moment: Moment) -> None:
        self.moments.append(moment)
        if len(self.moments) > _MOST:
            del self.moments[_MOST // 2]
            self.left_out += 1

    def told(self) -> Chapter:
        # Events are written down when a broker has taken them, which may be later; their own
        # times count whole seconds, and what is equal by that stays in the order of the log.
        self.moments.sort(key=lambda moment: int(moment.at or 0))
        return Chapter(
            self.attempt,
            self.after,
            self.began_at,
            self.ended_at,
            self.outcome,
            self.reason,
            self.detail,
            tuple(self.moments),
            self.left_out,
            dict(self.events),
            self.facts,
        )


class _Chapters:
    """Lines in, chapters out."""

    def __init__(self) -> None:
        self._chapters: list[_Open] = []
        self._attempts: dict[int, _Open] = {}
        self._status = Status.PENDING

    def told(self) -> tuple[Chapter, ...]:
        return tuple(
            chapter.told() for chapter in self._chapters if chapter.attempt or chapter.moments
        )

    def told_then(self, job_id: str) -> Timeline:
        """By the lines alone: the record says only how it stands now."""
        if self._status is Status.RUNNING:
            self.of(self._last).outcome = str(Status.RUNNING)
        return Timeline(job_id, self._last, self._status, self.told())

    def of(self, attempt: int) -> _Open:
        return self._attempts[attempt]

    def know(self, attempt: int, at: float | None) -> _Open:
        """The chapter of an attempt, begun now unless it stands already."""
        known = self._attempts.get(attempt)
        if known is None:
            known = self._attempts[attempt] = _Open(attempt, attempt - 1, at)
            self._chapters.append(known)
        return known

    def read(self, line: Mapping[str, Any]) -> None:
        at = _seconds(line.get("timestamp"))
        event = line.get("event")
        if event == AuditEvent.RECEIVED:
            return  # somebody heard what is told here as published
        if event == AuditEvent.STATUS_CHANGED:
            chapter = self._moved(line, at)
        else:
            chapter = self._chapter_of(line, at)
            if event == AuditEvent.ATTEMPT_ENDED:
                chapter.facts = {
                    name: line[name] for name in _FACTS if isinstance(line.get(name), _PLAIN)
                }
                tokens = line.get("tokens")
                if isinstance(tokens, dict):
                    chapter.facts["tokens"] = tokens
            if event == AuditEvent.PUBLISHED:
                payload = payload_of(line)
                at = _told_at(payload, at)
                chapter.events[str(payload.get("event") if payload else "?")[:64]] += 1
        if is_shown(line):
            chapter.add(moment(line, at))

    def _moved(self, line: Mapping[str, Any], at: float | None) -> _Open:
        attempt = _number(line.get("attempt"))
        with suppress(ValueError):
            self._status = Status(str(line.get("to")))
        if line.get("to") == Status.RUNNING:
            return self.know(attempt or self._last + 1, at)
        if line.get("from") == Status.RUNNING:
            chapter = self.know(attempt or self._last or 1, None)
            chapter.ended_at = at
            to = str(line.get("to"))
            chapter.outcome = "given back" if to == Status.PENDING else to
            chapter.reason = str(line.get("reason") or "")
            chapter.detail = str(line.get("detail") or "")
            return chapter
        return self._between()

    def _chapter_of(self, line: Mapping[str, Any], at: float | None) -> _Open:
        """What an attempt tells stays with it, however late it is written down."""
        if str(line.get("event")) in _OF_AN_ATTEMPT:
            attempt = _number(line.get("attempt"))
            if attempt:
                return self.know(attempt, at)
            if self._chapters:
                return self._chapters[-1]  # a history of the original, which counts no attempts
        return self._between()

    def _between(self) -> _Open:
        if not self._chapters or self._chapters[-1].attempt:
            self._chapters.append(_Open(0, self._last, None))
        return self._chapters[-1]

    @property
    def _last(self) -> int:
        return max(self._attempts, default=0)


_OF_AN_ATTEMPT = frozenset(
    {
        AuditEvent.PUBLISHED,
        AuditEvent.LEASED,
        AuditEvent.CANCEL_REQUESTED,
        AuditEvent.ATTEMPT_STARTED,
        AuditEvent.ATTEMPT_ENDED,
        AuditEvent.MESSAGE_SENT,
        AuditEvent.MESSAGE_RECEIPT,
        AuditEvent.STALE,
        AuditEvent.VERIFIED,
        AuditEvent.REFUSED,
    }
)
_FACTS = ("exit_code", "signal", "elapsed_sec", "cpu_sec", "peak_memory", "cost")
_PLAIN = (int, float, str)


def _known_at(line: Mapping[str, Any]) -> float:
    """When somebody who looked could see it; an event is there before a broker has taken it."""
    payload = payload_of(line) if line.get("event") == AuditEvent.PUBLISHED else None
    return seconds(line.get("timestamp")) if payload is None else said_at(line, payload)


def _told_at(payload: Mapping[str, Any] | None, logged_at: float | None) -> float | None:
    """When the sender says that it was, unless that lies after it was logged."""
    said = _seconds(payload.get("timestamp")) if payload else None
    if said is None or (logged_at is not None and said > logged_at):
        return logged_at
    return said


def _as_line(message: Message) -> dict[str, Any]:
    event = message.event
    told = {"timestamp": event.timestamp, "attempt": event.attempt, "payload": message.content}
    return {"event": AuditEvent.PUBLISHED, **told}


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _seconds(stamp: Any) -> float | None:
    try:
        return parse_stamp(stamp) if isinstance(stamp, str) and stamp else None
    except ValueError:
        return None
