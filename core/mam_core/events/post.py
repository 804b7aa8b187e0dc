"""A post: an event on its way to the broker, with all that is needed to send it.

Kept in the outbox from the moment the registry has numbered the event until a
broker has taken it. It names topic and broker itself, because its job may be
archived before the broker is back.
"""

from __future__ import annotations

from typing import NamedTuple

from mam_core.record_parts import Broker


class Post(NamedTuple):
    """An event's payload and where it goes."""

    job_id: str
    attempt: int
    seq: int
    topic: str
    broker: Broker
    payload: bytes
    said_at: str = ""  #: to the millisecond, for history; the payload counts whole seconds
