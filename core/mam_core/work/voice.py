"""How a worker speaks of an attempt: events on the way, lines of history, and the last word.

A registry that cannot be written to for a while costs events, never the result:
that is tried until it stands, until somebody else has the job, or until the
worker itself is to end; then a sweep finds the job by its lease.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from mam_core.agents.streams.events import Told
from mam_core.audit import AuditEvent, warn
from mam_core.claims import is_closed
from mam_core.clock import parse_stamp, stamp
from mam_core.errors import JobNotFound, MamError, TransitionRefused
from mam_core.events.event import Event, EventName
from mam_core.events.missed import find
from mam_core.pace import paced
from mam_core.records import Job, Reason
from mam_core.registry import Registry
from mam_core.stores.base import GateKind
from mam_core.work.decision import Decision
from mam_core.work.screen import Screen

_RETRY_SEC = 1.0
#: So far back we look for the last event that is not ours.
_LOOK_BACK = 50


class Voice:
    """Speaks for one attempt of one job."""

    def __init__(self, registry: Registry, job: Job, screen: Screen) -> None:
        self.told = 0  #: how many events
        self._registry = registry
        self._job = job
        self._screen = screen
        self._seqs: deque[int] = deque(maxlen=_LOOK_BACK)
        self._trouble = ""

    def mention(self, words: str) -> None:
        """To whoever looks at the terminal."""
        self._screen.say(self._job.job_id, words)

    def tell(self, *events: Told) -> None:
        """Publish them. Raises when the job is not ours."""
        for event in events:
            try:
                published = self._registry.publish(
                    self._job.job_id,
                    event.name,
                    detail=event.detail,
                    data=event.data,
                    attempt=self._job.attempt,
                )
            except (TransitionRefused, JobNotFound):
                raise
            except (MamError, OSError) as problem:
                warn(f"an event of job {self._job.job_id} is not told: {problem}")
            else:
                self.told += 1
                self._seqs.append(published.seq)
        if events:
            self._ring()

    def asked_by_others(self, last_seq: int) -> bool:
        """The last event that we did not tell, if it is not too long ago, is a question."""
        told = self._by_others(last_seq)
        return bool(told) and told[-1].event == EventName.PERMISSION_REQUIRED

    def last_word_of_others(self, last_seq: int) -> Event | None:
        """What the agent itself reported as the end of this attempt; the last, if it did twice."""
        words = [
            event
            for event in self._by_others(last_seq)
            if event.event in (EventName.COMPLETED, EventName.ERROR)
            and event.attempt == self._job.attempt
        ]
        return words[-1] if words else None

    def _by_others(self, last_seq: int) -> list[Event]:
        """The events that we did not tell, as far back as we look."""
        job_id = self._job.job_id
        wanted = set(range(max(1, last_seq - _LOOK_BACK + 1), last_seq + 1)) - set(self._seqs)
        told = find(self._registry.store, {job_id: wanted}).get(job_id, []) if wanted else []
        return [message.event for message in told]

    def note(self, event: AuditEvent, **facts: Any) -> None:
        """A line of the job's history."""
        known = {name: value for name, value in facts.items() if value is not None}
        line = self._registry.note(event, attempt=self._job.attempt, **known)
        store, job_id = self._registry.store, self._job.job_id
        if not store.audit.append(job_id, line.to_dict(job_id)):
            # The holder of the history is stuck: like a change's own line, this is written later.
            with suppress(OSError, MamError), store.transaction() as tx:
                tx.note(job_id, line)

    def apply(
        self, decision: Decision, told: Mapping[str, Any], is_stopping: Callable[[], bool]
    ) -> Job | None:
        """The last word on the attempt; None when it could not be said.

        Raises when the job is not ours any more.
        """
        while (job := self._tried(decision, told)) is None:
            if is_stopping():
                return None
            time.sleep(paced(_RETRY_SEC))
        self._ring()
        words = f"{job.status} ({job.reason})" if job.reason else str(job.status)
        self.mention(": ".join(filter(None, (words, decision.detail))))
        return job

    def _tried(self, decision: Decision, told: Mapping[str, Any]) -> Job | None:
        try:
            return self._change(decision, told)
        except (TransitionRefused, JobNotFound):
            raise
        except (MamError, OSError) as problem:
            if str(problem) != self._trouble:
                self._trouble = str(problem)
                warn(f"the end of job {self._job.job_id} cannot be written: {problem}")
            return None

    def _change(self, decision: Decision, told: Mapping[str, Any]) -> Job:
        job_id, attempt = self._job.job_id, self._job.attempt
        detail = decision.detail or None
        if decision.status is not None:
            return self._registry.finish(
                job_id,
                decision.status,
                attempt=attempt,
                reason=decision.reason,
                detail=detail,
                left_behind=decision.left_behind or None,
                told=told,
            )
        if decision.quota_until is not None:
            self._hold_back(decision.quota_until, decision.detail)
        return self._registry.requeue(
            job_id,
            decision.reason or Reason.OTHER,
            attempt=attempt,
            detail=detail,
            failed=decision.failed,
            not_before=decision.not_before,
            told=told,
        )

    def _hold_back(self, until: float, why: str) -> None:
        """Every other job of this agent would meet the same limit. A pause that lasts longer, or
        that a person made without an end, stays as it is."""
        gate = self._registry.store.facts().gates().find(GateKind.AGENT, self._job.agent)
        if (
            gate is not None
            and is_closed(gate, self._registry.clock.now())
            and (gate.until is None or parse_stamp(gate.until) >= until)
        ):
            return
        self._registry.pause(
            GateKind.AGENT, self._job.agent, why=f"quota: {why}", until=stamp(until)
        )

    def _ring(self) -> None:
        with suppress(OSError, MamError):
            self._registry.store.outbox.ring()
