"""How a job came to where it is: each change of its state, with who said so and by which rule.

Read from its audit log, which keeps every claim, end and `state` event; events that no
broker has taken yet come from the outbox. Nothing is judged anew: what stands here is
what was believed then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mam_core.agents.hearing import payload_of
from mam_core.agents.signs import Sign
from mam_core.audit import AuditEvent
from mam_core.clock import parse_stamp
from mam_core.events.event import EventName
from mam_core.events.missed import posted_at
from mam_core.registry import Registry
from mam_core.replay.folding import said_at


class Change(NamedTuple):
    """One change. `words` may be the agent's: foreign text."""

    at: str
    attempt: int | None
    state: str  #: a status, a state of the agent, or what was done
    channel: str  #: who says so
    rule: str
    words: str

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


#: Events that change what is shown; the others are in `mam logs`.
_TELLING = {
    EventName.STARTED: "started",
    EventName.PERMISSION_REQUIRED: "asked",
    EventName.COMPLETED: "said completed",
    EventName.ERROR: "said error",
}
_STAMP_SEC = 0.999


def past(registry: Registry, job_id: str) -> list[Change]:
    """Oldest first."""
    store = registry.store
    found: list[tuple[float, Change]] = []
    seqs = [0]
    for line in store.audit.events(job_id):
        # An event is logged when a broker has taken it: what came after it may be there already.
        payload = payload_of(line) if line.get("event") == AuditEvent.PUBLISHED else None
        moment = _moment(line) if payload is None else said_at(line, payload)
        found += ((moment, change) for change in _told_by(line, seqs))
    for _, message, said in posted_at(store, {job_id: max(seqs)}):
        # Without that, a date to the second: what the log has of that second was before.
        stamped = {"timestamp": said} if said else message.content
        moment = _moment(stamped) + (0.0 if said else _STAMP_SEC)
        found += ((moment, change) for change in _of_event(message.content))
    return [change for _, change in sorted(found, key=lambda pair: pair[0])]


def _told_by(line: Mapping[str, Any], seqs: list[int]) -> Iterator[Change]:
    event = line.get("event")
    if event == AuditEvent.PUBLISHED:
        payload = payload_of(line)
        if payload is not None:
            if isinstance(seq := payload.get("seq"), int):
                seqs.append(seq)
            yield from _of_event(payload)
        return
    at, attempt = str(line.get("timestamp", "")), _attempt(line)
    by = f"by {line['by']}" if line.get("by") else ""
    if event == AuditEvent.REGISTERED:
        yield Change(at, None, "pending", "registry", "registered", by)
    elif event == AuditEvent.STATUS_CHANGED:
        words = _joined(line.get("reason"), line.get("detail"), by)
        state, cause = str(line.get("to", "")), str(line.get("cause") or "status_changed")
        yield Change(at, attempt, state, "registry", cause, words)
    elif event == AuditEvent.CANCEL_REQUESTED:
        words = _joined(line.get("why"), by)
        yield Change(at, attempt, "cancelling", "registry", str(event), words)
    elif event == AuditEvent.STALE:
        yield Change(at, attempt, "lost", "sweep", str(event), _joined(line.get("why"), by))
    elif event == AuditEvent.ATTEMPT_ENDED:
        yield Change(at, attempt, "agent ended", "process", str(line.get("why") or ""), _exit(line))


def _of_event(event: Mapping[str, Any]) -> Iterator[Change]:
    at, attempt = str(event.get("timestamp", "")), _attempt(event)
    name, data = str(event.get("event", "")), event.get("data")
    detail = str(event.get("detail") or "")
    if name == EventName.STATE:
        sign = Sign.from_dict(data) if isinstance(data, Mapping) else None
        if sign is not None:
            failed = "failed" if sign.failed else ""
            words = _joined(failed, sign.words)
            yield Change(at, attempt, str(sign.state), sign.channel, sign.rule, words)
    elif name in _TELLING and not _is_last_word(event):
        yield Change(at, attempt, _TELLING[EventName(name)], "event", name, detail)


def _is_last_word(event: Mapping[str, Any]) -> bool:
    """Of the worker, which the change of the status tells already; an agent's has no figures."""
    data = event.get("data")
    ends = event.get("event") in (EventName.COMPLETED, EventName.ERROR)
    return ends and isinstance(data, Mapping) and ("elapsed_sec" in data or "witness" in data)


def _moment(line: Mapping[str, Any]) -> float:
    try:
        return parse_stamp(str(line.get("timestamp")))
    except ValueError:
        return 0.0


def _exit(line: Mapping[str, Any]) -> str:
    how = ""
    if isinstance(line.get("signal"), int):
        how = f"signal {line['signal']}"
    elif isinstance(line.get("exit_code"), int):
        how = f"exit {line['exit_code']}"
    return _joined(how, line.get("left"))


def _attempt(line: Mapping[str, Any]) -> int | None:
    attempt = line.get("attempt")
    return attempt if isinstance(attempt, int) else None


def _joined(*parts: object) -> str:
    texts = (part if isinstance(part, str) else json.dumps(part) for part in parts if part)
    return ", ".join(texts)
