"""The newest events of a job, from where the registry keeps them: outbox and audit log."""

from __future__ import annotations

from collections import deque

from mam_core.events.event import Event
from mam_core.events.missed import posted, published
from mam_core.records import check_job_id
from mam_core.registry import Registry


def told_events(
    registry: Registry, job_id: str, most: int, until: int | None = None
) -> list[Event]:
    """At most so many, in order; also those that no broker has taken yet. `until` is the number of
    the newest that is wanted."""
    store = registry.store
    # The outbox first: what has left it meanwhile is in the log.
    waiting = {message.event.seq: message.event for _, message in posted(store, {job_id: 0})}
    logged = (message.event for message, _ in published(store, check_job_id(job_id)))
    taken = deque((event for event in logged if until is None or event.seq <= until), most)
    found = {event.seq: event for event in taken} | waiting
    if until is not None:
        found = {seq: event for seq, event in found.items() if seq <= until}
    return [found[seq] for seq in sorted(found)][-most:]
