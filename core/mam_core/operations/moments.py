"""One line of a job's history as a person reads it: when, a word, a sentence, and who did it.

Progress and heartbeats are the tail's business; here stands what changed the job's
fate, what its agent was doing, and what people said to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mam_core.agents.hearing import payload_of
from mam_core.audit import AuditEvent
from mam_core.events.event import EventName
from mam_core.records import Status


class Moment(NamedTuple):
    """What happened; `text` and `by` are foreign words."""

    at: float | None
    word: str  #: a few letters: claimed, ended, waiting, said …
    text: str
    by: str
    passed: bool | None = None  #: for what can go well or not

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


#: Events of an agent that say what it is doing; all others are only counted.
_TOLD = frozenset(
    {EventName.STATE, EventName.PERMISSION_REQUIRED, EventName.ARTIFACT, EventName.QUEUED}
)


def is_shown(line: Mapping[str, Any]) -> bool:
    """Whether a line stands in a timeline."""
    if line.get("event") != AuditEvent.PUBLISHED:
        return True
    payload = payload_of(line)
    return payload is not None and str(payload.get("event")) in _TOLD


def moment(line: Mapping[str, Any], at: float | None) -> Moment:
    event = line.get("event")
    make = _MAKERS.get(str(event))
    word, text, passed = make(line) if make else (str(event), _facts(line), None)
    by = str(line.get("by") or "")[:_WORD_CHARS]
    return Moment(at, word[:_WORD_CHARS], text[:_TEXT_CHARS], by, passed)


_WORD_CHARS = 40
_TEXT_CHARS = 4000
_Told = tuple[str, str, bool | None]
#: Told in a place of their own, or of no use to a reader.
_PLACED = frozenset({"n", "timestamp", "event", "job_id", "revision", "by", "attempt"})

_CAUSES = {
    "claim": "claimed",
    "cancel": "cancelled",
    "requeue": "given back",
    "retry": "retried",
    "override": "set by hand",
    "edited outside": "edited outside",
    "end": "ended",
}


def _moved(line: Mapping[str, Any]) -> _Told:
    was, to = str(line.get("from")), str(line.get("to"))
    cause = str(line.get("cause") or "")
    word = to if cause == "end" else _CAUSES.get(cause, cause or "changed")
    parts = [f"{was} → {to}", line.get("reason"), line.get("detail"), line.get("why")]
    passed = True if to == Status.COMPLETED else False if to == Status.ERROR else None
    return word, ": ".join(str(part) for part in parts if part), passed


def _published(line: Mapping[str, Any]) -> _Told:
    told = payload_of(line) or {}
    data = told.get("data")
    detail = str(told.get("detail") or "")
    if told.get("event") == EventName.STATE and isinstance(data, dict) and data.get("state"):
        who = " ".join(str(data[name]) for name in ("channel", "rule") if data.get(name))
        words = str(data.get("words") or detail)
        return str(data["state"]), f"{words} ({who})" if who and words else words or who, None
    if told.get("event") == EventName.PERMISSION_REQUIRED:
        return "asks", detail, None
    return str(told.get("event")), detail, None


def _started(line: Mapping[str, Any]) -> _Told:
    git = line.get("git")
    at = str(git.get("commit") or "")[:10] if isinstance(git, dict) else ""
    parts = [line.get("workdir"), f"at {at}" if at else ""]
    return "started", " ".join(str(part) for part in parts if part), None


def _ended(line: Mapping[str, Any]) -> _Told:
    parts = []
    if line.get("exit_code") is not None:
        parts.append(f"exit {line['exit_code']}")
    if line.get("signal"):
        parts.append(f"signal {line['signal']}")
    if line.get("killed"):
        parts.append("killed")
    if isinstance(line.get("elapsed_sec"), int | float):
        parts.append(f"after {line['elapsed_sec']:g} s")
    checks, passed = _checks(line)
    left = str(line.get("left") or "")
    return "agent ended", "; ".join(filter(None, (", ".join(parts), left, checks))), passed


def _verified(line: Mapping[str, Any]) -> _Told:
    checks, _ = _checks(line)
    passed = line.get("passed") is True
    return "verified", checks or ("nothing was promised" if passed else ""), passed


def _checks(line: Mapping[str, Any]) -> tuple[str, bool | None]:
    checks = line.get("checks")
    known = [check for check in checks if isinstance(check, dict)] if checks else []
    if not known:
        return "", None
    passed = all(check.get("passed") is True for check in known)
    told = known if passed else [check for check in known if check.get("passed") is not True]
    return "; ".join(str(check.get("words") or check.get("what")) for check in told), passed


def _said(line: Mapping[str, Any]) -> _Told:
    return str(line.get("kind") or "said"), str(line.get("text") or ""), None


def _receipt(line: Mapping[str, Any]) -> _Told:
    words = str(line.get("words") or "")
    number = f"message {line.get('message')}"
    passed = False if line.get("stage") == "refused" else None
    return str(line.get("stage") or "receipt"), ": ".join(filter(None, (number, words))), passed


def _edited(line: Mapping[str, Any]) -> _Told:
    changed = line.get("changed")
    return "edited", ", ".join(map(str, changed)) if isinstance(changed, dict) else "", None


def _why(word: str) -> Callable[[Mapping[str, Any]], _Told]:
    return lambda line: (word, str(line.get("why") or ""), None)


def _facts(line: Mapping[str, Any]) -> str:
    known = {name: value for name, value in line.items() if name not in _PLACED}
    return " ".join(f"{name}={value}" for name, value in known.items() if value not in (None, ""))


_MAKERS: dict[str, Callable[[Mapping[str, Any]], _Told]] = {
    AuditEvent.STATUS_CHANGED: _moved,
    AuditEvent.PUBLISHED: _published,
    AuditEvent.ATTEMPT_STARTED: _started,
    AuditEvent.ATTEMPT_ENDED: _ended,
    AuditEvent.VERIFIED: _verified,
    AuditEvent.MESSAGE_SENT: _said,
    AuditEvent.MESSAGE_RECEIPT: _receipt,
    AuditEvent.EDITED: _edited,
    AuditEvent.CANCEL_REQUESTED: _why("cancel asked"),
    AuditEvent.STALE: _why("stale"),
    AuditEvent.REFUSED: _why("refused"),
}
