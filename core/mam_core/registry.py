"""The registry: every change a job can go through, over any store.

Each method is one transaction: read the record, apply a change of `changes`,
write it together with the audit line that tells of it. A write that speaks for
an attempt carries its number, and an old one is refused and audited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mam_core import changes, claims
from mam_core.audit import AuditEvent
from mam_core.clock import stamp
from mam_core.errors import (
    MamError,
    RegistryMissing,
    TransitionRefused,
)
from mam_core.leases import LeaseTerms, age, is_over, new_lease, renewed_lease
from mam_core.ledger import Ledger, numbered
from mam_core.record_parts import Broker, Lease, MemoryCap
from mam_core.records import Job, Reason, Status
from mam_core.stores.base import Bid, GateKind, Progress, Transaction, Want

if TYPE_CHECKING:
    from mam_core.acts import Act
    from mam_core.messages import Message, MessageKind, Stage
    from mam_core.publishing import Published
    from mam_core.registration import Registered, Registration


class Registry(Ledger):
    """The one engine: console, command line, worker and scripts all come through here."""

    # -- registering -----------------------------------------------------------------------

    def register(
        self,
        requests: Sequence[Mapping[str, Any]],
        *,
        progress: Progress | None = None,
        allow_collision: bool = False,
    ) -> list[Registered]:
        """New jobs from the keys of `fields.SETTABLE`: all of them, or none.

        A request whose key belongs to a live job answers with that job; one that would write an
        artifact of a live job is refused, unless that is allowed.
        """
        # Here and not above: a claim is the shortest of commands, and registers nothing.
        from mam_core.registration import checked

        now = self.clock.now()
        prepared = [checked(request, now) for request in requests]

        def add(_: Transaction, batch: Registration) -> None:
            for values in prepared:
                batch.add(values)

        return self.register_by(add, progress=progress, allow_collision=allow_collision)

    def register_by(
        self,
        choose: Callable[[Transaction, Registration], None],
        *,
        progress: Progress | None = None,
        allow_collision: bool = False,
    ) -> list[Registered]:
        """As `register`, chosen inside the transaction: what else that writes is true with it."""
        from mam_core.registration import Registration

        now = self.clock.now()
        with self.store.transaction(create=True, progress=progress) as tx:
            batch = Registration(tx, now, allow_collision=allow_collision, broker=self._broker)
            choose(tx, batch)
            if jobs := list(batch.jobs.values()):
                tx.insert(jobs, [self.line(AuditEvent.REGISTERED, job) for job in jobs])
        if jobs:
            self.store.remember()
        return batch.answers

    # -- claiming and running --------------------------------------------------------------

    def claim(
        self,
        agent_session: str,
        *,
        agents: Iterable[str] | None = None,
        lease: LeaseTerms | None = None,
        pid: int | None = None,
        cap_of: Callable[[Job], MemoryCap | None] | None = None,
    ) -> Job | None:
        """The next job of this label, now running as a new attempt; None when there is none.

        Without a lease the job is unsupervised: only its own timeouts end it. `cap_of` says what
        will hold it to its memory.
        """
        now = self.clock.now()
        served = None if agents is None else frozenset(agents)
        want = Want(agent_session, served, now, self.slots)
        terms = self._new_lease(lease) if lease else None
        tell = partial(self.moved, cause="claim")
        try:
            quick = self.store.claim_at_once(want, Bid(now, self.node, pid, terms), tell)
            if quick is not None:
                cap = cap_of(quick) if cap_of else None
                return self.capped(quick.job_id, cap, attempt=quick.attempt) if cap else quick
            with self.store.transaction() as tx:
                job = tx.next_claimable(want)
                # Asked second: a database has told its gates along with the job.
                if job is None or self._is_drained(tx, now):
                    return None
                if job.is_edited:
                    job = self.notice_edit(tx, job)
                cap = cap_of(job) if cap_of else None
                new = changes.claimed(
                    job, now, node=self.node, pid=pid, lease=terms, memory_cap=cap
                )
                tx.put(new, tell(job, new))
                return new
        except RegistryMissing:
            return None

    def _is_drained(self, tx: Transaction, now: float) -> bool:
        return claims.is_closed(tx.gates().find(GateKind.NODE, self.node), now)

    def heartbeat(self, job_id: str, lease: LeaseTerms, *, attempt: int | None = None) -> Job:
        """Take or renew the lease of a running job; the answer shows a wish to cancel it."""
        with self.changing(job_id, attempt) as (tx, job):
            if job.status is not Status.RUNNING:
                raise TransitionRefused(
                    f"job {job_id} is {job.status}: only a running job is leased"
                )
            asked = self.clock.since_boot()
            new_terms = renewed_lease(
                job, lease, self.clock, self.node, store_time=self.store.now()
            )
            new_terms = self._completed(new_terms, asked)
            new = changes.renewed(job, self.clock.now(), new_terms)
            taken = None if new_terms.renewals else AuditEvent.LEASED
            tx.put(new, self.line(taken, new, owner=lease.owner) if taken else None)
            return new

    def _new_lease(self, terms: LeaseTerms) -> Lease:
        asked = self.clock.since_boot()
        made = new_lease(terms, self.clock, self.node, store_time=self.store.now())
        return self._completed(made, asked)

    def _completed(self, lease: Lease, asked: float) -> Lease:
        """With where its marks are, and our own date from before the store was asked for its
        time: its holder, who may be stopped in between, counts from ours, all others from theirs.
        """
        return lease._replace(since_boot=round(asked, 3), logs=self.store.audit.path)

    def lease_expired(self, lease: Lease) -> bool:
        return is_over(lease, self.clock, self.store.now())

    def lease_age(self, lease: Lease) -> float | None:
        """Seconds since it was renewed; None for one whose clock cannot be read from here."""
        return age(lease, self.clock, self.store.now())

    def next_seq(self, job_id: str, *, attempt: int | None = None) -> int:
        """The number of the job's next event."""
        with self.changing(job_id, attempt) as (tx, job):
            new = changes.touched(job, self.clock.now(), last_seq=job.last_seq + 1)
            tx.put(new, None)
            return new.last_seq

    def capped(self, job_id: str, cap: MemoryCap, *, attempt: int) -> Job:
        """What holds the attempt to its memory is not what its claim said."""
        with self.changing(job_id, attempt) as (tx, job):
            new = changes.capped(job, self.clock.now(), cap)
            tx.put(new, None)
            return new

    def in_session(self, job_id: str, session_id: str, *, attempt: int) -> Job:
        """The agent works in this session of its own, by which it can be taken up again."""
        with self.changing(job_id, attempt) as (tx, job):
            new = changes.in_session(job, self.clock.now(), session_id)
            tx.put(new, None)
            return new

    # -- ending ----------------------------------------------------------------------------

    def finish(
        self,
        job_id: str,
        status: Status,
        *,
        attempt: int | None,
        reason: Reason | None = None,
        detail: str | None = None,
        left_behind: str | None = None,
        told: Mapping[str, Any] | None = None,
        seen: Job | None = None,
    ) -> Job:
        """End the running attempt as `status`; with `told`, an event says so, with that data.

        `seen` is the record that the decision rests on: `Overtaken` when it has changed since.
        """
        with self.changing(job_id, attempt, seen) as (tx, job):
            now = self.clock.now()
            new = changes.ended(numbered(job, told), now, status, reason, detail, left_behind)
            self.move(tx, job, new, "end")
            self.tell(tx, new, str(status), told, now)
            return new

    def requeue(
        self,
        job_id: str,
        reason: Reason,
        *,
        attempt: int | None,
        detail: str | None = None,
        failed: bool = False,
        not_before: float | None = None,
        told: Mapping[str, Any] | None = None,
        seen: Job | None = None,
    ) -> Job:
        """Give the running attempt up; the job waits for its next claim.

        One that was lost too often in a row ends as error. `told` and `seen` as in `finish`.
        """
        with self.changing(job_id, attempt, seen) as (tx, job):
            now = self.clock.now()
            if job.is_cancelling:
                # The wish of a person outlives the worker that it was told to.
                words = ": ".join(filter(None, (changes.cancel_words(job), detail)))
                return self.cancel_now(tx, job, now, words, told)
            new = changes.requeued(
                numbered(job, told), now, reason, detail, failed=failed, not_before=not_before
            )
            self.move(tx, job, new, "requeue")
            event = "queued" if new.status is Status.PENDING else str(new.status)
            self.tell(tx, new, event, told, now)
            return new

    # -- telling ---------------------------------------------------------------------------

    def publish(
        self,
        job_id: str,
        event: str,
        *,
        detail: str = "",
        data: Mapping[str, Any] | None = None,
        attempt: int | None = None,
        route: Callable[[Broker], Broker] | None = None,
    ) -> Published:
        """Number an event of a job, put it into the outbox and let the status follow it.

        `route` may send it elsewhere than the record says.
        """
        from mam_core import publishing

        said = publishing.Said(publishing.checked_name(event), detail, data or {})
        return publishing.publish(self, job_id, said, attempt=attempt, route=route)

    def send(self, job_id: str, kind: MessageKind, text: str = "", *, to: str = "") -> Message:
        """Leave a message for the agent at work; its worker delivers it and writes receipts.

        `to` is the question that an answer is meant for, where that has a name.
        """
        from mam_core import messaging

        return messaging.send(self, job_id, kind, text, to)

    def receipt(self, job_id: str, n: int, stage: Stage, *, attempt: int, words: str = "") -> Job:
        """How far message `n` has come. One that is finished, or further, stays as it is."""
        from mam_core import messaging

        return messaging.receipt(self, job_id, n, stage, attempt=attempt, words=words)

    # -- what a person does ----------------------------------------------------------------

    def set_status(self, job_id: str, status: Status) -> Job:
        """A person's override: any status to any."""
        with self.changing(job_id) as (tx, job):
            if status is job.status:
                return job
            new = changes.overridden(job, self.clock.now(), status, self.node)
            self.move(tx, job, new, "override")
            return new

    def request_cancel(self, job_id: str, why: str = "") -> Job:
        """Cancel a pending or an unsupervised job at once; ask the worker of any other.

        A job that has ended is returned as it is: the race is lost, not an error.
        """
        with self.changing(job_id) as (tx, job):
            now = self.clock.now()
            if job.is_ended or job.is_cancelling:
                return job
            if job.status is Status.RUNNING and job.is_supervised:
                new = changes.cancel_requested(job, now, self.actor, why)
                tx.put(new, self.line(AuditEvent.CANCEL_REQUESTED, new, why=why))
                return new
            wished = job.evolve(cancel_requested_at=stamp(now), cancel_requested_by=self.actor)
            return self.cancel_now(tx, job, now, why, wished=wished)

    def retry(self, job_id: str, *, resume: bool = False) -> Job:
        from mam_core.fields import fresh_token

        with self.changing(job_id) as (tx, job):
            token = fresh_token() if job.auth_token is not None else None
            new = changes.retried(job, self.clock.now(), token, resume=resume)
            tx.put(new, self.moved(job, new, "retry"))
            return new

    def edit(self, job_id: str, values: Mapping[str, Any]) -> Job:
        """Change what a pending job asks for; its audit line keeps the old values."""
        from mam_core import upkeep

        return upkeep.edit(self, job_id, values)

    def pause(
        self, kind: GateKind, name: str = "", *, why: str = "", until: str | None = None
    ) -> None:
        from mam_core import upkeep

        upkeep.pause(self, kind, name, why=why, until=until)

    def resume(self, kind: GateKind, name: str = "") -> bool:
        """Open a gate again; False when it was not closed."""
        from mam_core import upkeep

        return upkeep.resume(self, kind, name)

    def set_slots(self, group: str, slots: int | None, *, why: str = "") -> Act:
        """How many jobs of a group may run at once, from now on and for all; None: as the settings
        have it. What runs goes on."""
        from mam_core import upkeep

        return upkeep.set_slots(self, group, slots, why=why)

    def archive(self, job_ids: Iterable[str]) -> str | None:
        """Take ended jobs out of the registry; the answer is the batch that brings them back."""
        return self.archive_chosen(lambda _: job_ids)

    def archive_chosen(self, choose: Callable[[Transaction], Iterable[str]]) -> str | None:
        """As `archive`, chosen inside the transaction, so that the choice still holds as they go.

        None when none was chosen.
        """
        from mam_core import upkeep

        return upkeep.archive(self, choose)

    def restore(self, batch: str | None = None) -> list[str]:
        """Bring back a batch, by default the newest."""
        from mam_core import upkeep

        return upkeep.restore(self, batch)

    def notice(self, job_id: str) -> Job:
        """The record; if another tool wrote it, history says so from now on."""
        job = self.store.get(job_id)
        if not job.is_edited:
            return job
        with self.changing(job_id) as (_, job):
            return job

    def notice_all(self, job_ids: Iterable[str]) -> None:
        """The same for those who only show jobs: what cannot be written down now is left to the
        next one."""
        for job_id in job_ids:
            with suppress(MamError):
                self.notice(job_id)

    # -- asking ----------------------------------------------------------------------------

    def get(self, job_id: str) -> Job:
        return self.store.get(job_id)

    def refusals(self, job_id: str) -> list[claims.Refusal]:
        """Why a job is not claimed; empty when the next session of its label will take it."""
        job = self.store.get(job_id)
        facts = self.store.facts()
        return list(claims.refusals(job, facts, now=self.clock.now(), slots=self.slots))
