"""One job's audit lines, read in the order of their numbers, as changes with a moment each.

Two chains come of it. What the record said is told line by line, and the number of a
line, not its clock, says what came first: one that is dated before its predecessor, or
after the moment it is read, happened when its predecessor did. What the agent said may
be written down long after, when a broker is back; it counts from when it was said.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from mam_core.agents.hearing import Heard, payload_of
from mam_core.audit import AuditEvent
from mam_core.clock import stamp
from mam_core.events.event import EventName
from mam_core.records import Reason, Status
from mam_core.replay.standing import Contract, Stand, Word
from mam_core.summaries import HEAD_CHARS, NOTHING_TOLD, Used, kept_timeout, used_of

#: Of what an agent said, so much is kept; the whole stands in the log.
MOST_WORDS = 300
_MOST_SEQ = 2**53
#: An event that only its own stamp dates was within that second.
_STAMP_SEC = 0.999

#: Events that mean something beyond being the last one.
_LASTING = frozenset(
    {EventName.STATE, EventName.PERMISSION_REQUIRED, EventName.COMPLETED, EventName.ERROR}
)


class Change(NamedTuple):
    """From `at` on the job stands so, or has said so: one of the two is there."""

    at: float
    stand: Stand | None
    word: Word | None


class Fold:
    """The state of the two chains of one job."""

    __slots__ = ("_heard", "_said_at", "_seq", "_stand", "_stood_at", "_used", "contract")

    def __init__(self, meta: Mapping[str, Any] | None) -> None:
        """`meta` is the record as it was registered, if it can be had."""
        self.contract = contract_of(meta or {})
        self._stand: Stand | None = None
        self._stood_at = 0.0
        self._said_at = 0.0
        self._seq = 0
        self._heard = Heard()
        self._used = NOTHING_TOLD

    def read(self, line: Mapping[str, Any], now: float) -> Change | None:
        """What the next line changes; `now` is when it is read."""
        event = line.get("event")
        if event == AuditEvent.PUBLISHED:
            return self._told(line, now)
        make = _MAKERS.get(event) if isinstance(event, str) else None
        if make is None:
            if "revision" not in line:
                return None  # it tells of the job, and not of a change of its record
            make = _touched
        before = self._stand or Stand(self.contract, Status.PENDING, self.contract.created_at)
        stand = make(before, line)
        if stand is self._stand:
            return None
        at = seconds(line.get("timestamp"))
        if self._stood_at < at <= now:
            self._stood_at = at
        self._stand = stand
        return Change(self._stood_at, stand, None)

    def _told(self, line: Mapping[str, Any], now: float) -> Change | None:
        payload = payload_of(line)
        if payload is None:
            return None
        seq, name = payload.get("seq"), payload.get("event")
        if type(seq) is not int or not self._seq < seq <= _MOST_SEQ or not isinstance(name, str):
            return None
        self._seq = seq
        at = said_at(line, payload)
        if self._said_at < at <= now:
            self._said_at = at
        attempt = payload.get("attempt", 1)
        if attempt != self._heard.attempt and isinstance(attempt, int):
            self._heard, self._used = Heard(attempt), NOTHING_TOLD
        if name in _LASTING:
            self._heard = self._heard.event(_short(payload))._replace(last=None)
        if payload.get("data"):
            self._use(used_of(payload["data"]))
        words = str(payload.get("detail") or "")[:MOST_WORDS]
        moment = seconds(payload.get("timestamp"))
        word = Word(seq, name[:64], words, moment, self._heard, self._used)
        return Change(self._said_at, None, word)

    def _use(self, told: Used) -> None:
        """What an event does not say is as it was; the same figures are the same object."""
        old = self._used
        used = Used(
            old.tokens if told.tokens is None else told.tokens,
            old.cost if told.cost is None else told.cost,
            old.progress if told.progress is None else told.progress,
            old.memory if told.memory is None else told.memory,
        )
        if used != self._used:
            self._used = used


def seconds(text: object) -> float:
    """Since 1970; 0 for what is no moment."""
    text = str(text)
    if len(text) == 24 and text[19] == "." and text[23] == "Z" and text[20:23].isdecimal():
        whole = _whole_seconds(text[:19] + "Z")
        return whole + int(text[20:23]) / 1000 if whole else 0.0
    return _whole_seconds(text)


@lru_cache(maxsize=1024)
def _whole_seconds(text: str) -> float:
    """A line and the event in it are of one second, and so are many lines of one job."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return moment.timestamp()


def contract_of(meta: Mapping[str, Any]) -> Contract:
    """Out of a file that others can write: what is of the wrong kind is left out."""
    created_at = _text(meta.get("created_at"))
    order = meta.get("order")
    return Contract(
        _text(meta.get("agent")),
        _text(meta.get("agent_session")),
        _text(meta.get("group")) or None,
        _whole(meta.get("priority")) or 0,
        order if type(order) is int else int(seconds(created_at) * 1_000_000),
        created_at,
        _text(meta.get("prompt"))[:HEAD_CHARS],
        _names(meta.get("after")),
        kept_timeout(meta.get("timeout_sec")),
        _text(meta.get("not_before")) or None,
    )


def said_at(line: Mapping[str, Any], payload: Mapping[str, Any]) -> float:
    """When the registry numbered it; older lines have only its own second, and their own time."""
    exact = line.get("said_at")
    if exact:
        return seconds(exact)
    logged, said = seconds(line.get("timestamp")), seconds(payload.get("timestamp"))
    return min(logged, said + _STAMP_SEC) if said else logged


def _short(payload: Mapping[str, Any]) -> dict[str, Any]:
    event = dict(payload)
    event["detail"] = str(payload.get("detail") or "")[:MOST_WORDS]
    data = payload.get("data")
    if isinstance(data, Mapping):
        event["data"] = {**data, "words": str(data.get("words") or "")[:MOST_WORDS]}
    return event


# -- what each kind of line does to a stand ---------------------------------------------------


def _registered(stand: Stand, line: Mapping[str, Any]) -> Stand:
    return Stand(stand.contract, Status.PENDING, stand.contract.created_at or _stamp(line))


def _moved(stand: Stand, line: Mapping[str, Any]) -> Stand:
    try:
        status = Status(str(line.get("to")))
    except ValueError:
        return stand
    at, by = _stamp(line), _text(line.get("by")) or None
    attempt = _whole(line.get("attempt"))
    contract, told = stand.contract, _told_end(line)
    if status is Status.RUNNING:
        return Stand(
            contract,
            status,
            at,
            attempt or stand.attempt + 1,
            node=_text(line.get("node")) or None,
            claimed_by=_text(line.get("owner")) or by,
            started_at=at,
        )
    attempt = stand.attempt if attempt is None else attempt
    if status is Status.PENDING:
        if "not_before" in line:
            contract = contract._replace(not_before=_text(line["not_before"]) or None)
        return Stand(contract, status, at, attempt, **told)
    if line.get("cause") == "cancel" and stand.cancel_requested_at is None:
        stand = stand._replace(cancel_requested_at=at, cancel_requested_by=by)
    return stand._replace(
        status=status, updated_at=at, attempt=attempt, ended_at=at, stale="", **told
    )


def _told_end(line: Mapping[str, Any]) -> dict[str, Any]:
    reason, detail = line.get("reason"), line.get("detail")
    return {
        "reason": _reason(reason) if isinstance(reason, str) else None,
        "detail": detail[:MOST_WORDS] if isinstance(detail, str) else None,
    }


def _reason(word: str) -> Reason:
    try:
        return Reason(word)
    except ValueError:
        return Reason.OTHER


def _cancelling(stand: Stand, line: Mapping[str, Any]) -> Stand:
    at = _stamp(line)
    return stand._replace(
        updated_at=at,
        cancel_requested_at=at,
        cancel_requested_by=_text(line.get("by")),
        detail=_text(line.get("why"))[:MOST_WORDS] or stand.detail,
    )


def _leased(stand: Stand, line: Mapping[str, Any]) -> Stand:
    owner = _text(line.get("owner")) or stand.claimed_by
    return stand._replace(claimed_by=owner, updated_at=_stamp(line))


def _touched(stand: Stand, line: Mapping[str, Any]) -> Stand:
    return stand._replace(updated_at=_stamp(line))


def _edited(stand: Stand, line: Mapping[str, Any]) -> Stand:
    changed = line.get("changed")
    if not isinstance(changed, Mapping):
        return stand
    old = stand.contract
    new = old._asdict() | {"prompt": old.head, "after": old.parents.split()}
    for name, values in changed.items():
        if name in _SHOWN and isinstance(values, Mapping):
            new[name] = values.get("to")
    return stand._replace(contract=contract_of(new), updated_at=_stamp(line))


_SHOWN = frozenset(
    {"agent", "agent_session", "group", "priority", "prompt", "after", "timeout_sec", "not_before"}
)


def _stale(stand: Stand, line: Mapping[str, Any]) -> Stand:
    if line.get("attempt") != stand.attempt:
        return stand
    return stand._replace(stale=_text(line.get("why"))[:MOST_WORDS] or "lost")


def _used(stand: Stand, line: Mapping[str, Any]) -> Stand:
    if line.get("attempt") != stand.attempt:
        return stand
    tokens, cost = usage(line)
    return stand._replace(tokens=tokens, cost=cost)


def usage(line: Mapping[str, Any]) -> tuple[int | None, float | None]:
    """The tokens and the price that the end of an attempt tells."""
    told, cost = line.get("tokens"), line.get("cost")
    tokens = None
    if isinstance(told, Mapping):
        tokens = (_whole(told.get("input")) or 0) + (_whole(told.get("output")) or 0)
    priced = isinstance(cost, int | float) and not isinstance(cost, bool)
    return tokens, float(cost) if priced and cost is not None else None


_MAKERS: dict[str, Callable[[Stand, Mapping[str, Any]], Stand]] = {
    AuditEvent.REGISTERED: _registered,
    AuditEvent.STATUS_CHANGED: _moved,
    AuditEvent.CANCEL_REQUESTED: _cancelling,
    AuditEvent.LEASED: _leased,
    AuditEvent.EDITED: _edited,
    AuditEvent.STALE: _stale,
    AuditEvent.ATTEMPT_ENDED: _used,
    AuditEvent.ARCHIVED: lambda stand, line: stand._replace(gone=True),
    AuditEvent.RESTORED: lambda stand, line: stand._replace(gone=False),
}


def _stamp(line: Mapping[str, Any]) -> str:
    """As a record has it: whole seconds."""
    text = str(line.get("timestamp", ""))
    if len(text) == 24 and text.endswith("Z"):
        return text[:19] + "Z"
    return stamp(seconds(text))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _names(value: object) -> str:
    return " ".join(filter(None, map(_text, value))) if isinstance(value, list | tuple) else ""


def _whole(value: object) -> int | None:
    return value if type(value) is int else None
