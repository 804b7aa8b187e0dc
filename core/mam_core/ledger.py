"""How one change is made, whichever it is: a transaction, the fence, an audit line, an event.

The registry's verbs stand on it, and so do the modules that hold the rules of the
seldom ones; so what every change must keep is written down once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from mam_core import changes
from mam_core.audit import AuditEvent, AuditLine
from mam_core.clock import Clock, SystemClock, fine_stamp
from mam_core.errors import JobNotFound, Overtaken, RegistryMissing
from mam_core.record_parts import Broker
from mam_core.records import Job, Reason, Status, check_job_id
from mam_core.stores.base import Store, Transaction

if TYPE_CHECKING:
    from mam_core.rights import Right, Rights


class Ledger:
    """A store, and in whose name it is written to."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock | None = None,
        actor: str = "",
        node: str = "",
        slots: Callable[[], Mapping[str, int]] = dict,
        broker: Callable[[], Broker] = Broker,
        rights: Rights | None = None,
        strict_checks: bool = False,
    ) -> None:
        """`slots` are those of the settings, `broker` is where the events of a new job go that
        names none: both are asked when they are needed, since settings may change.

        `rights` are those of an agent inside an attempt; None: everything is allowed. With
        `strict_checks` no job is completed by a check that changed since it was registered.
        """
        self.store = store
        self.clock = clock or SystemClock()
        self.actor = actor
        self.node = node
        self._slots = slots
        self._broker = broker
        self.rights = rights
        self.strict_checks = strict_checks

    @property
    def slots(self) -> Mapping[str, int]:
        return self._slots()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.store.close()

    def check_allowed(self, right: Right, job_id: str = "") -> None:
        """Raises `NotAllowed` for what an agent may not do. The verbs of operators ask here; a
        worker's own changes do not."""
        if self.rights is not None:
            self.rights.check(self.store, right, job_id)

    @contextmanager
    def changing(
        self, job_id: str, attempt: int | None = None, seen: Job | None = None
    ) -> Iterator[tuple[Transaction, Job]]:
        """A transaction around one job; a write of an old attempt is audited, then refused.

        With `seen`, one that is no longer as it was seen is left alone, which is nobody's mistake.
        """
        check_job_id(job_id)
        try:
            with self.store.transaction() as tx:
                job = tx.get(job_id)
                if seen is not None and job.to_dict() != seen.to_dict():
                    raise Overtaken(f"job {job_id} changed while it was looked at")
                if job.is_edited:
                    job = self.notice_edit(tx, job)
                stale = changes.stale_attempt(job, attempt)
                if stale is None:
                    yield tx, job
                else:
                    refused = {"attempt": attempt, "why": stale.message}
                    tx.note(job_id, self.note(AuditEvent.REFUSED, **refused))
        except RegistryMissing as missing:
            raise JobNotFound(f"there is no job {job_id}: {missing}") from None
        if stale is not None:
            raise stale

    def notice_edit(self, tx: Transaction, job: Job) -> Job:
        """Before a change of a record that another tool wrote, note in the history that it was."""
        known = self.store.audit.status(job.job_id) or {}
        was = known.get("status") or job.status
        new = changes.noticed(job, self.clock.now())
        told = {"from": was, "to": new.status, "cause": "edited outside"}
        tx.put(new, self.line(AuditEvent.STATUS_CHANGED, new, **told))
        return new

    def cancel_now(
        self,
        tx: Transaction,
        job: Job,
        now: float,
        why: str,
        told: Mapping[str, Any] | None = None,
        wished: Job | None = None,
    ) -> Job:
        new = numbered(wished or job, told)
        new = changes.ended(new, now, Status.CANCELLED, Reason.CANCELLED, why or None)
        self.move(tx, job, new, "cancel")
        self.tell(tx, new, str(Status.CANCELLED), told, now)
        return new

    def move(self, tx: Transaction, old: Job, new: Job, cause: str) -> None:
        """Out of the running attempt, which takes its messages with it."""
        tx.put(new, self.moved(old, new, cause))
        if old.messages:
            from mam_core import messaging

            messaging.tell_ends(self, tx, old, new)

    def tell(
        self, tx: Transaction, job: Job, event: str, told: Mapping[str, Any] | None, now: float
    ) -> None:
        if told is not None:
            from mam_core import publishing

            said = publishing.Said(publishing.checked_name(event), job.detail or "", told)
            publishing.post(tx, job, said, now)

    def line(self, event: AuditEvent, job: Job, **more: Any) -> AuditLine:
        facts = {"by": self.actor, "attempt": job.attempt, **more}
        if job.auth_token or job.broker.password:
            from mam_core.redaction import without_secrets

            facts = without_secrets(job, facts)
        return AuditLine(event, fine_stamp(self.clock.now()), facts, job.revision)

    def note(self, event: AuditEvent, **more: Any) -> AuditLine:
        return AuditLine(event, fine_stamp(self.clock.now()), {"by": self.actor, **more})

    def moved(self, old: Job, new: Job, cause: str, **more: Any) -> AuditLine:
        told = {"from": old.status, "to": new.status, "cause": cause, **more}
        for name, value in (("reason", new.reason), ("detail", new.detail)):
            if value is not None:
                told[name] = value
        if new.not_before != old.not_before:
            told["not_before"] = new.not_before
        if new.status is Status.RUNNING:  # where, and in whose hands: history shows it afterwards
            told |= ({"node": new.node} if new.node else {}) | (
                {"owner": new.lease.owner} if new.lease else {}
            )
        return self.line(AuditEvent.STATUS_CHANGED, new, **told)


def numbered(job: Job, told: Mapping[str, Any] | None) -> Job:
    """With the number of the event that tells of the change, if one does."""
    return job if told is None else job.evolve(last_seq=job.last_seq + 1)
