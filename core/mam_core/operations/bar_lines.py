"""From the lines of an audit log to stretches of time, one line after the other.

A log may have thousands of lines and a bar needs a handful of them, so a line is looked
at as bytes first and parsed only when it can matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from mam_core.agents.hearing import payload_of
from mam_core.agents.signs import AgentState
from mam_core.agents.states import moment
from mam_core.audit import AuditEvent
from mam_core.events.event import EventName
from mam_core.records import Status

#: Of one attempt; an agent that asks more often is shown as asking less often.
_MOST_WAITS = 200
_MOVED, _ENDED, _REGISTERED, _TOLD = (
    f'"{event}"'.encode()
    for event in (
        AuditEvent.STATUS_CHANGED,
        AuditEvent.ATTEMPT_ENDED,
        AuditEvent.REGISTERED,
        AuditEvent.PUBLISHED,
    )
)
_ASIDE = frozenset({EventName.LOG, EventName.HEARTBEAT})


class Outcome(StrEnum):
    """How an attempt ended."""

    RUNNING = "running"
    COMPLETED = "completed"
    ERROR = "error"
    CANCELLED = "cancelled"
    GIVEN_BACK = "given back"  #: the job went back to the queue
    UNKNOWN = "unknown"  #: nothing tells


class Wait(NamedTuple):
    """From when until when an agent stood still; None: it still does."""

    began_at: float
    ended_at: float | None


class Stretch:
    """An attempt while its log is read."""

    def __init__(self, attempt: int, began_at: float, queued_at: float | None, node: str) -> None:
        self.attempt = attempt
        self.began_at = began_at
        self.queued_at = queued_at
        self.node = node
        self.ended_at: float | None = None
        self.outcome = Outcome.RUNNING
        self.reason = ""
        self.waits: list[Wait] = []
        self.tokens: int | None = None
        self.cost: float | None = None

    @property
    def is_waiting(self) -> bool:
        return bool(self.waits) and self.waits[-1].ended_at is None

    def wait(self, at: float) -> None:
        if not self.is_waiting and len(self.waits) < _MOST_WAITS:
            self.waits.append(Wait(max(at, self.began_at), None))

    def go_on(self, at: float) -> None:
        if self.is_waiting:
            began = self.waits[-1].began_at
            self.waits[-1] = Wait(began, max(at, began))

    def end(self, at: float, outcome: Outcome, reason: str) -> None:
        self.ended_at = max(at, self.began_at)
        self.outcome = outcome
        self.reason = reason
        self.go_on(self.ended_at)


class Folding:
    """Lines in, stretches out."""

    def __init__(self) -> None:
        self._stretches: dict[int, Stretch] = {}
        self._queued_at: float | None = None
        self._is_asked = False  #: then whatever is told ends the wait

    def stretches(self) -> list[Stretch]:
        return [self._stretches[attempt] for attempt in sorted(self._stretches)]

    def read(self, raw: bytes) -> None:
        if not self._may_matter(raw):
            return
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            return
        if isinstance(line, dict):
            at = moment(stamp) if isinstance(stamp := line.get("timestamp"), str) else None
            if at is not None:
                self._fold(line, at)

    def _may_matter(self, raw: bytes) -> bool:
        """Most lines do not: they tell of progress while nobody is asked anything."""
        if _MOVED in raw or _ENDED in raw or _REGISTERED in raw:
            return True
        asks = self._is_asked or b"state" in raw or b"permission_required" in raw
        return asks and _TOLD in raw

    def _fold(self, line: Mapping[str, Any], at: float) -> None:
        event = line.get("event")
        if event == AuditEvent.REGISTERED:
            self._queued_at = at
        elif event == AuditEvent.STATUS_CHANGED:
            self._moved(line, at)
        elif (one := self._stretches.get(_number(line.get("attempt")) or self._last)) is None:
            return
        elif event == AuditEvent.ATTEMPT_ENDED:
            one.tokens, one.cost = _tokens(line.get("tokens")), _amount(line.get("cost"))
        elif event == AuditEvent.PUBLISHED and one.ended_at is None:
            _tell(one, line, at)
            self._is_asked = one.is_waiting

    def _moved(self, line: Mapping[str, Any], at: float) -> None:
        was, to = line.get("from"), line.get("to")
        attempt = _number(line.get("attempt"))
        if to == Status.RUNNING:
            number = attempt or self._last + 1
            for earlier in self._stretches.values():  # its end is not in the log
                if earlier.ended_at is None and earlier.attempt != number:
                    earlier.end(at, Outcome.UNKNOWN, "")
            node = line.get("node")
            known = node[:255] if isinstance(node, str) else ""
            self._stretches[number] = Stretch(number, at, self._queued_at, known)
            self._queued_at = None
            return
        if was == Status.RUNNING:
            one = self._stretches.get(attempt or self._last)
            if one is not None:
                one.end(at, _outcome(to), str(line.get("reason") or "")[:40])
        if to == Status.PENDING:
            self._queued_at = at

    @property
    def _last(self) -> int:
        return max(self._stretches, default=0)


def _tell(one: Stretch, line: Mapping[str, Any], logged_at: float) -> None:
    told = payload_of(line) or {}
    name, data = told.get("event"), told.get("data")
    stamp = told.get("timestamp")
    said_at = moment(stamp) if isinstance(stamp, str) else None
    # Written down when a broker had it, which may be later than it was said.
    at = logged_at if said_at is None else min(logged_at, said_at)
    if name == EventName.STATE and isinstance(data, Mapping):
        if data.get("state") == AgentState.WAITING:
            one.wait(at)
        elif data.get("state") != AgentState.UNKNOWN:
            one.go_on(at)
    elif name == EventName.PERMISSION_REQUIRED:
        one.wait(at)
    elif name not in _ASIDE:
        one.go_on(at)


def _outcome(to: object) -> Outcome:
    if to == Status.PENDING:
        return Outcome.GIVEN_BACK
    try:
        return Outcome(str(to))
    except ValueError:
        return Outcome.UNKNOWN


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _amount(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        return None
    return float(value)


def _tokens(value: Any) -> int | None:
    parts = (value.get("input"), value.get("output")) if isinstance(value, Mapping) else (value,)
    known = [part for part in map(_amount, parts) if part is not None]
    return int(sum(known)) if known else None
