"""What a history shows of one job, gathered line by line, and which lines are a person's act.

An entry is small and complete in itself: with the next lines it becomes the next entry,
so that it can be kept, and no log is read twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from mam_core.audit import AuditEvent
from mam_core.records import ENDED, Status
from mam_core.replay.folding import contract_of, seconds, usage

_MOST_WORDS = 300
_Number = TypeVar("_Number", int, float)


class Entry(NamedTuple):
    """A job that is or was. All texts are foreign words; moments are seconds since 1970."""

    job_id: str
    status: str = ""  #: as the log has it: the last one, for a job that is gone
    agent: str = ""
    agent_session: str = ""
    group: str | None = None
    head: str = ""  #: the beginning of the prompt
    attempts: int = 0
    created_at: float = 0.0
    started_at: float | None = None  #: of the last attempt
    ended_at: float | None = None
    changed_at: float = 0.0  #: of the newest line
    reason: str = ""
    detail: str = ""
    tokens: int | None = None  #: of all attempts together
    cost: float | None = None
    archived: bool = False  #: cleaned away, and not brought back
    cancelling: bool = False

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


class Act(NamedTuple):
    """What a person did, by one line of a job's log. Foreign words."""

    at: float
    job_id: str
    n: int  #: of the line
    verb: str
    by: str
    words: str

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


def first_entry(job_id: str, meta: Mapping[str, Any] | None) -> Entry:
    contract = contract_of(meta or {})
    return Entry(
        job_id,
        "",
        contract.agent,
        contract.agent_session,
        contract.group,
        contract.head,
        created_at=seconds(contract.created_at),
    )


def with_line(entry: Entry, line: Mapping[str, Any]) -> Entry:
    """The entry after one more line."""
    event, at = line.get("event"), seconds(line.get("timestamp"))
    if event == AuditEvent.RECEIVED:
        return entry  # that somebody listened is nothing that happened to the job
    if at > entry.changed_at:
        entry = entry._replace(changed_at=at)
    if event == AuditEvent.STATUS_CHANGED:
        return _moved(entry, line, at)
    if event == AuditEvent.REGISTERED:
        return entry._replace(status=str(Status.PENDING), created_at=entry.created_at or at)
    if event == AuditEvent.ATTEMPT_ENDED:
        tokens, cost = usage(line)
        return entry._replace(tokens=_sum(entry.tokens, tokens), cost=_sum(entry.cost, cost))
    if event == AuditEvent.EDITED:
        return _edited(entry, line)
    if event == AuditEvent.CANCEL_REQUESTED:
        return entry._replace(cancelling=True)
    if event in (AuditEvent.ARCHIVED, AuditEvent.RESTORED):
        return entry._replace(archived=event == AuditEvent.ARCHIVED)
    return entry


def _moved(entry: Entry, line: Mapping[str, Any], at: float) -> Entry:
    to, attempt = str(line.get("to") or ""), line.get("attempt")
    attempts = max(entry.attempts, attempt) if isinstance(attempt, int) else entry.attempts
    if to == Status.RUNNING and not isinstance(attempt, int):
        attempts += 1  # a history of the original, which counts no attempts
    return entry._replace(
        status=to[:_MOST_WORDS],
        attempts=attempts,
        started_at=at if to == Status.RUNNING else entry.started_at,
        ended_at=at if to in ENDED else None,
        reason=str(line.get("reason") or "")[:_MOST_WORDS],
        detail=str(line.get("detail") or "")[:_MOST_WORDS],
        cancelling=False,
    )


def _edited(entry: Entry, line: Mapping[str, Any]) -> Entry:
    changed = line.get("changed")
    if not isinstance(changed, Mapping):
        return entry
    new = entry._asdict() | {"prompt": entry.head}
    new |= {name: it.get("to") for name, it in changed.items() if isinstance(it, Mapping)}
    contract = contract_of(new)
    return entry._replace(
        agent=contract.agent,
        agent_session=contract.agent_session,
        group=contract.group,
        head=contract.head,
    )


def _sum(old: _Number | None, more: _Number | None) -> _Number | None:
    return more if old is None else old if more is None else old + more


# -- acts ------------------------------------------------------------------------------------

#: Kinds of lines that only a person's command writes, and that command.
_VERBS = {
    AuditEvent.REGISTERED: "register",
    AuditEvent.EDITED: "edit",
    AuditEvent.CANCEL_REQUESTED: "cancel",
    AuditEvent.ARCHIVED: "clean",
    AuditEvent.RESTORED: "clean --undo",
    AuditEvent.VERIFIED: "verify",
}
_CAUSES = {"cancel": "cancel", "retry": "retry", "override": "status --set"}


def act_of(before: Entry, line: Mapping[str, Any]) -> Act | None:
    """The act that a line tells of; None for what a worker, a sweep or an agent did.

    Workers write under the name of whoever started them, so it is the kind of the line that
    tells them apart, and not the name.
    """
    event, by = line.get("event"), line.get("by")
    if not isinstance(event, str) or not isinstance(by, str) or not by:
        return None
    if event == AuditEvent.STATUS_CHANGED:
        verb = _CAUSES.get(str(line.get("cause")), "")
        if verb == "cancel" and before.cancelling:
            return None  # the end of what a person asked for earlier
    elif event == AuditEvent.MESSAGE_SENT:
        verb = str(line.get("kind") or "say")[:20]
    else:
        verb = _VERBS.get(AuditEvent(event), "") if event in _VERBS else ""
    if not verb:
        return None
    n = line.get("n")
    number = n if isinstance(n, int) else 0
    at = seconds(line.get("timestamp"))
    return Act(at, before.job_id, number, verb, by[:_MOST_WORDS], _words(line))


def _words(line: Mapping[str, Any]) -> str:
    changed = line.get("changed")
    if isinstance(changed, Mapping):
        return ", ".join(map(str, changed))[:_MOST_WORDS]
    if line.get("cause") == "override":
        return f"{line.get('from')} → {line.get('to')}"[:_MOST_WORDS]
    return str(line.get("text") or line.get("why") or line.get("detail") or "")[:_MOST_WORDS]
