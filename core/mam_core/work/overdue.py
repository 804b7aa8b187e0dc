"""When the time of a job is over that nobody supervises: by its own two limits and its events.

It was claimed by ``pick`` or by a script, so that there is no lease and no process
to look at. Its record and its events are all there is; a wait for a person is no
silence. Stamps are whole seconds, and a job gets the benefit of that.
"""

from __future__ import annotations

from typing import NamedTuple

from mam_core.clock import parse_stamp
from mam_core.events.event import EventName
from mam_core.events.missed import find
from mam_core.records import Job, Reason
from mam_core.stores.base import Store

_STAMP_SEC = 1.0


class Overdue(NamedTuple):
    """Which limit was passed."""

    reason: Reason
    words: str


def overdue(job: Job, store: Store, now: float, first_seen: float) -> Overdue | None:
    """Why the job has had its time; None as long as it has not.

    `first_seen` is for records of other tools that do not say when the job began.
    """
    began = _moment(job.started_at)
    if now - (first_seen if began is None else began) >= job.timeout_sec:
        return Overdue(Reason.TIMEOUT, f"it has not ended in {job.timeout_sec:g} s")
    heard = _moment(job.updated_at)
    if now - (first_seen if heard is None else heard) < job.idle_timeout_sec:
        return None
    if _waits_for_person(job, store):
        return None
    words = f"no event for {job.idle_timeout_sec:g} s (idle timeout)"
    return Overdue(Reason.IDLE_TIMEOUT, words)


def _moment(text: str | None) -> float | None:
    try:
        return parse_stamp(text) + _STAMP_SEC if text else None
    except ValueError:
        return None


def _waits_for_person(job: Job, store: Store) -> bool:
    """Its last event is a question. Read only when the job is about to be ended for silence."""
    if not job.last_seq:
        return False
    told = find(store, {job.job_id: [job.last_seq]}).get(job.job_id, [])
    return any(message.event.event == EventName.PERMISSION_REQUIRED for message in told)
