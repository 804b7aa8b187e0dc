"""Events read from where the registry keeps them: what no message brought, and what one claims.

From the moment that an event is numbered it stands in the outbox; once a broker
has taken it, and before it leaves the outbox, it stands in the audit log. So
what is not in the log is looked for in the outbox, and what has left it by then
is in the log now.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from mam_core.audit import AuditEvent
from mam_core.errors import MamError
from mam_core.events.event import BadEvent, Message, parse
from mam_core.stores.base import Store

#: So many posts of the outbox are looked at.
_MAX_POSTS = 5_000

_FOR_EVER = 2**63

_PUBLISHED = b'"published"'


def find(store: Store, wanted: Mapping[str, Iterable[int]]) -> dict[str, list[Message]]:
    """Those of the wanted events that there are, by job, in order."""
    found: dict[str, list[Message]] = {}
    for job_id, seqs in wanted.items():
        left = set(seqs)
        got: dict[int, Message] = {}
        for look in (_in_log, _in_outbox, _in_log):
            if left:
                got |= look(store, job_id, left)
                left -= got.keys()
        if got:
            found[job_id] = [got[seq] for seq in sorted(got)]
    return found


def find_after(store: Store, past: Mapping[str, int], since: str = "") -> dict[str, list[Message]]:
    """Of each job all events above its number, in order: for jobs that have no record any more.

    With `since` only those that no broker had taken by then.
    """
    found: dict[str, dict[int, Message]] = {job_id: {} for job_id in past}
    for job_id, message in posted(store, past):
        found[job_id].setdefault(message.event.seq, message)
    for job_id, last in past.items():
        for message, moment in published(store, job_id):
            if message.event.seq > last and moment >= since:
                found[job_id].setdefault(message.event.seq, message)
    return {job_id: [got[seq] for seq in sorted(got)] for job_id, got in found.items() if got}


def _in_log(store: Store, job_id: str, seqs: Collection[int]) -> dict[int, Message]:
    found: dict[int, Message] = {}
    with suppress(OSError, MamError):
        for seq, raw in store.audit.published(job_id, seqs).items():
            message = _message(_payload(json.loads(raw).get("payload")), job_id)
            if message is not None and message.event.seq == seq:
                found[seq] = message
    return found


def _in_outbox(store: Store, job_id: str, seqs: Collection[int]) -> dict[int, Message]:
    found: dict[int, Message] = {}
    with suppress(OSError, MamError):
        for post in store.outbox.named(job_id, sorted(seqs)):
            message = _message(post.payload, job_id)
            if message is not None and message.event.seq == post.seq:
                found[post.seq] = message
    return found


def posted(store: Store, past: Mapping[str, int]) -> Iterator[tuple[str, Message]]:
    """The events above each job's number that no broker has taken yet; of no other job."""
    return ((job_id, message) for job_id, message, _ in posted_at(store, past))


def posted_at(store: Store, past: Mapping[str, int]) -> Iterator[tuple[str, Message, str]]:
    """The same, each with the moment at which the registry numbered it; empty: not known."""
    try:
        posts = store.outbox.posts(_MAX_POSTS, _Past(past))
    except (OSError, MamError):
        return
    for post in posts:
        if post.job_id in past:
            message = _message(post.payload, post.job_id)
            if message is not None and message.event.seq == post.seq:
                yield post.job_id, message, post.said_at


class _Past(Mapping[str, int]):
    """How far each job is to be passed over: with a broker that is down for long, most posts are
    of no interest here, and are not even opened."""

    def __init__(self, past: Mapping[str, int]) -> None:
        self._past = past

    def __getitem__(self, job_id: str) -> int:
        return self._past.get(job_id, _FOR_EVER)

    def __iter__(self) -> Iterator[str]:
        return iter(self._past)

    def __len__(self) -> int:
        return len(self._past)


def published(store: Store, job_id: str) -> Iterator[tuple[Message, str]]:
    """The events that a broker has taken, each with the time of its line."""
    for raw in _lines(store, job_id):
        if _PUBLISHED not in raw:
            continue
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        if not isinstance(line, dict) or line.get("event") != AuditEvent.PUBLISHED:
            continue
        message = _message(_payload(line.get("payload")), job_id)
        if message is not None:
            yield message, str(line.get("timestamp", ""))


def _lines(store: Store, job_id: str) -> Iterator[bytes]:
    """A log that cannot be read tells nothing; that is its writers' business to say."""
    with suppress(OSError, MamError):
        yield from store.audit.lines(job_id)


def _payload(told: Any) -> bytes:
    """As an object, or as the text that was sent."""
    if isinstance(told, str):
        return told.encode("utf-8", "surrogatepass")
    return json.dumps(told).encode()


def _message(payload: bytes, job_id: str) -> Message | None:
    try:
        message = parse(payload)
    except BadEvent:
        return None
    return message if message.event.job_id == job_id else None
