"""Say something to an agent at work: one more turn; or stop the one that it is in."""

from __future__ import annotations

from mam_core.messages import MessageKind
from mam_core.operations.delivery import Wait, delivered, send
from mam_core.operations.outcome import Outcome
from mam_core.registry import Registry


def say(registry: Registry, job_id: str, text: str, wait: Wait) -> Outcome:
    """Raises when it cannot even be sent."""
    return delivered(registry, [send(registry, job_id, MessageKind.SAY, text)], wait)[0]


def interrupt(registry: Registry, job_id: str, wait: Wait) -> Outcome:
    """The agent stays, and waits for what is said next."""
    return delivered(registry, [send(registry, job_id, MessageKind.INTERRUPT)], wait)[0]
