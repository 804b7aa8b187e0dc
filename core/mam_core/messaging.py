"""Messages to agents: how one is sent, how its worker reports on it, how it ends with its attempt.

The rules of `Registry.send` and `Registry.receipt`, apart from the registry for
the same reason as `upkeep`: most commands never speak to an agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam_core import changes
from mam_core.audit import AuditEvent
from mam_core.clock import fine_stamp
from mam_core.errors import MamError, TransitionRefused
from mam_core.messages import (
    MAX_UNFINISHED,
    Message,
    MessageKind,
    Stage,
    checked_text,
    kept,
    next_number,
    unfinished,
)
from mam_core.records import Job, Status

if TYPE_CHECKING:
    from mam_core.ledger import Ledger
    from mam_core.stores.base import Transaction


class NoSuchMessage(MamError):
    """The job has no such message."""

    title = "No such message"


def send(registry: Ledger, job_id: str, kind: MessageKind, text: str, to: str) -> Message:
    text = checked_text(kind, text)
    with registry.changing(job_id) as (tx, job):
        if trouble := _deaf(job):
            raise TransitionRefused(f"job {job_id} {trouble}")
        if len(unfinished(job.messages)) >= MAX_UNFINISHED:
            raise TransitionRefused(
                f"{MAX_UNFINISHED} messages to job {job_id} are still on their way: "
                "wait for them to be delivered"
            )
        now = registry.clock.now()
        message = Message(
            next_number(job.messages),
            kind,
            text,
            registry.actor,
            fine_stamp(now),
            job.attempt,
            to=to,
        )
        new = changes.touched(job, now, messages=kept((*job.messages, message)))
        told = {"message": message.n, "kind": str(kind), "text": text} | ({"to": to} if to else {})
        tx.put(new, registry.line(AuditEvent.MESSAGE_SENT, new, **told))
        return message


def _deaf(job: Job) -> str:
    """Why nobody would deliver it."""
    if job.status is not Status.RUNNING:
        return f"is {job.status}: only an agent at work can be spoken to"
    if not job.is_supervised:
        return "is not run by a worker of ours: there is nobody to deliver it"
    if job.is_cancelling:
        return "is being cancelled"
    return ""


def receipt(
    registry: Ledger, job_id: str, n: int, stage: Stage, *, attempt: int, words: str
) -> Job:
    with registry.changing(job_id, attempt) as (tx, job):
        found = next((message for message in job.messages if message.n == n), None)
        if found is None:
            raise NoSuchMessage(f"job {job_id} has no message {n} that waits for a receipt")
        if not stage.follows(found.stage):
            return job  # said twice, or too late: what is written stands
        new_message = found.at_stage(stage, words)
        messages = kept([new_message if one.n == n else one for one in job.messages])
        new = changes.touched(job, registry.clock.now(), messages=messages)
        told = {"message": n, "stage": str(stage)} | ({"words": new_message.words} if words else {})
        tx.put(new, registry.line(AuditEvent.MESSAGE_RECEIPT, new, **told))
        return new


def tell_ends(registry: Ledger, tx: Transaction, old: Job, new: Job) -> None:
    """History of what `messages.closed` did to those that were on their way."""
    after = {message.n: message for message in new.messages}
    for message in unfinished(old.messages):
        if (end := after.get(message.n)) is not None and end.is_finished:
            facts = {"message": end.n, "stage": str(end.stage), "words": end.words}
            line = registry.note(AuditEvent.MESSAGE_RECEIPT, attempt=end.attempt, **facts)
            tx.note(new.job_id, line)
