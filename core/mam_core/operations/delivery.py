"""A message and its receipt: send it, and wait until it is known what became of it.

What is known stands in the record, written by the job's worker, on whichever host
that is. That the receipt does not come in time says nothing about the message: it
stays on its way, and the sentence says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mam_core.errors import JobNotFound, MamError, TransitionRefused
from mam_core.messages import Message, MessageKind, Stage
from mam_core.operations.outcome import Outcome
from mam_core.pace import paced
from mam_core.registry import Registry
from mam_core.rights import Right

#: How long a receipt is waited for; a worker looks for messages twice a second.
RECEIPT_SEC = 15.0
_LOOK_SEC = 0.1


class Unconfirmed(MamError):
    """Nothing shows that the agent took the message."""

    title = "Unconfirmed"
    exit_code = 2


class Wait(NamedTuple):
    """For how long, and by which clock; None: not at all."""

    timeout: float | None = RECEIPT_SEC
    is_stopped: Callable[[], bool] = lambda: False
    sleep: Callable[[float], None] = time.sleep


class Sent(NamedTuple):
    """A message on its way."""

    job_id: str
    message: Message
    about: str = ""  #: the question that it answers


def send(
    registry: Registry,
    job_id: str,
    kind: MessageKind,
    text: str = "",
    *,
    to: str = "",
    about: str = "",
) -> Sent:
    if kind is not MessageKind.ANSWER:  # that was asked before the question was looked for
        registry.check_allowed(Right.SAY, job_id)
    return Sent(job_id, registry.send(job_id, kind, text, to=to), about)


def delivered(registry: Registry, sent: Sequence[Sent], wait: Wait) -> list[Outcome]:
    """What became of each, in their order; one deadline for all of them."""
    if wait.timeout is None:
        return [_told(one, one.message, waited=None) for one in sent]
    deadline = registry.clock.since_boot() + wait.timeout
    seen: dict[int, Message] = {}
    while True:
        for number, one in enumerate(sent):
            if number not in seen or not seen[number].is_finished:
                seen[number] = _look(registry, one, seen.get(number, one.message))
        over = registry.clock.since_boot() >= deadline or wait.is_stopped()
        if over or all(message.is_finished for message in seen.values()):
            break
        wait.sleep(paced(_LOOK_SEC))
    return [_told(one, seen[number], wait.timeout) for number, one in enumerate(sent)]


def _look(registry: Registry, sent: Sent, before: Message) -> Message:
    try:
        messages = registry.get(sent.job_id).messages
    except JobNotFound:
        return before.at_stage(Stage.UNCONFIRMED, "its record is gone")
    except MamError:
        return before  # being written by another tool; looked at again
    found = next((one for one in messages if one.n == sent.message.n), None)
    return found or before


def _told(sent: Sent, message: Message, waited: float | None) -> Outcome:
    job, stage = f"job {sent.job_id}", message.stage
    about = f" ({sent.about})" if sent.about else ""
    words = f": {message.words}" if message.words else ""
    if stage is Stage.ACCEPTED:
        return Outcome(sent.job_id, True, f"{job} took it{words}{about}")
    if waited is None:
        return Outcome(sent.job_id, True, f"message {message.n} is on its way to {job}{about}")
    problem: MamError
    if stage is Stage.REFUSED:
        problem = TransitionRefused(f"{job} did not get it{words}{about}")
    elif stage is Stage.UNCONFIRMED:
        problem = Unconfirmed(f"nobody can tell whether {job} took it{words}{about}")
    elif stage is Stage.SENT:
        problem = Unconfirmed(
            f"the worker of {job} has not delivered it within {waited:g} s; it stays on its way"
        )
    else:
        problem = Unconfirmed(
            f"{job} was given it, and has not shown within {waited:g} s that it took it; "
            "an agent at work may take it after its turn"
        )
    return Outcome.refused(sent.job_id, problem)
