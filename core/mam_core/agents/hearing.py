"""What was heard of a running attempt: folded from its events, one after the other.

Events come out of the audit log, where each stands in a line once a broker has it, and
out of the outbox before that. Only the last of each kind matters here, so that a few
kilobytes at the end of a log tell what an agent does now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from mam_core.agents.signs import AgentState, Sign
from mam_core.audit import AuditEvent
from mam_core.clock import parse_stamp
from mam_core.events.event import EventName
from mam_core.limits import NearLimit
from mam_core.records import Status
from mam_core.summaries import Memory, memory_told


class Said(NamedTuple):
    """One event, as far as it matters. `words` are the agent's: foreign text."""

    seq: int
    name: str
    words: str
    at: float


class Heard(NamedTuple):
    """Of one attempt; the defaults are what is known before it has said anything."""

    attempt: int = 0
    last: Said | None = None  #: the newest event of all
    sign: Sign | None = None  #: the newest `state` event
    sign_seq: int = 0
    question: Said | None = None  #: the newest that asks a person
    last_word: Said | None = None  #: "completed" or "error", by the agent's own report
    limit: NearLimit | None = None  #: while it is silent: what ends it, by its worker's word
    memory: Memory | None = None  #: as it was told last
    stale: str = ""  #: what a sweep wrote down, when it could not decide

    def event(self, event: Mapping[str, Any]) -> Heard:
        """With one more event; one of another attempt, or an older one, changes nothing."""
        if event.get("attempt", self.attempt) != self.attempt:
            return self
        seq, name = event.get("seq"), event.get("event")
        if not isinstance(seq, int) or not isinstance(name, str):
            return self
        if self.last is not None and seq <= self.last.seq:
            return self
        said = Said(seq, name, str(event.get("detail") or ""), _moment(event.get("timestamp")))
        data = event.get("data")
        memory = memory_told(data)
        now = self._replace(last=said, memory=memory or self.memory)
        if name == EventName.STATE:
            if isinstance(data, Mapping) and "limit" in data:
                now = now._replace(limit=NearLimit.from_event(data["limit"]))
            sign = Sign.from_dict(data) if isinstance(data, Mapping) else None
            if sign is not None and sign.state is not AgentState.UNKNOWN:
                return now._replace(sign=sign, sign_seq=seq)
        elif name == EventName.PERMISSION_REQUIRED:
            return now._replace(question=said)
        elif name in (EventName.COMPLETED, EventName.ERROR):
            return now._replace(last_word=said)
        return now

    def line(self, line: Mapping[str, Any]) -> Heard:
        """With one more line of the audit log."""
        name = line.get("event")
        if name == AuditEvent.PUBLISHED:
            payload = payload_of(line)
            return self.event(payload) if payload is not None else self
        if line.get("attempt") != self.attempt:
            return self
        if name == AuditEvent.STATUS_CHANGED and line.get("to") == Status.RUNNING:
            return Heard(self.attempt)  # its claim: nothing before this is about it
        if name == AuditEvent.STALE:
            return self._replace(stale=str(line.get("why") or ""))
        return self


def payload_of(line: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The event that a `published` line tells of; it stands there as an object or as its text."""
    payload = line.get("payload")
    if isinstance(payload, str):
        try:
            payload = json.loads(payload)
        except (ValueError, RecursionError):
            return None
    return payload if isinstance(payload, Mapping) else None


def _moment(text: object) -> float:
    try:
        return parse_stamp(str(text))
    except ValueError:
        return 0.0
