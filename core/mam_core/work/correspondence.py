"""Messages on their way: from the job's record to the agent, and receipts back into it.

Whatever talks to the agent (a dialogue, a pane) is offered each message once. A
registry that cannot be written to for a while costs nothing: receipts wait, in
their order, and are written when it can be.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from mam_core.audit import warn
from mam_core.errors import JobNotFound, MamError, TransitionRefused
from mam_core.messages import Message, Receipt, Stage
from mam_core.messaging import NoSuchMessage
from mam_core.registry import Registry
from mam_core.work.decision import Cause
from mam_core.work.hold import Hold

_DEAF = "this agent takes no messages while it works"


class Talker(Protocol):
    """Whoever has the agent's ear."""

    def offer(self, message: Message) -> None:
        """Deliver it, now or later, or refuse it; what comes of it is among the receipts."""

    def receipts(self) -> list[Receipt]:
        """What became known about messages, since the last call."""


class Deaf:
    """For an agent that reads its prompt and nothing more."""

    def __init__(self) -> None:
        self._refused: list[Receipt] = []

    def offer(self, message: Message) -> None:
        self._refused.append(Receipt(message.n, Stage.REFUSED, _DEAF))

    def receipts(self) -> list[Receipt]:
        told, self._refused = self._refused, []
        return told


class Correspondence:
    """Of one attempt."""

    def __init__(self, registry: Registry, hold: Hold, talker: Talker) -> None:
        self._registry = registry
        self._hold = hold
        self._talker = talker
        self._seen = 0  #: the number of the newest message that was offered
        self._unwritten: deque[Receipt] = deque()
        self._trouble = ""

    def look(self) -> None:
        """Take what is new in the record as it was seen last, and write what became known."""
        job = self._hold.job
        for message in job.messages:
            if message.n > self._seen:
                self._seen = message.n
                if message.attempt == job.attempt and not message.is_finished:
                    self._talker.offer(message)
        self._unwritten += self._talker.receipts()
        while self._unwritten and self._hold.is_ours and self._write(self._unwritten[0]):
            self._unwritten.popleft()

    def _write(self, receipt: Receipt) -> bool:
        """False when it is to be tried again."""
        job = self._hold.job
        try:
            self._registry.receipt(
                job.job_id, receipt.n, receipt.stage, attempt=job.attempt, words=receipt.words
            )
        except NoSuchMessage:
            return True  # another tool took it out of the record
        except (TransitionRefused, JobNotFound) as problem:
            self._hold.stop(Cause.TAKEN, problem.message)
            return False
        except (MamError, OSError) as problem:
            if str(problem) != self._trouble:
                self._trouble = str(problem)
                warn(f"a receipt of job {job.job_id} cannot be written: {problem}")
            return False
        self._trouble = ""
        return True
