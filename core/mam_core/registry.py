"""The registry: every change a job can go through, over any store.

Each method is one transaction: read the record, apply a change of `changes`,
write it together with the audit line that tells of it. A write that speaks for
an attempt carries its number, and an old one is refused and audited.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from mam_core import changes, claims
from mam_core.audit import AuditEvent, AuditLine
from mam_core.clock import Clock, SystemClock, fine_stamp, stamp
from mam_core.errors import (
    InvalidField,
    JobNotFound,
    RegistryMissing,
    StoreError,
    TransitionRefused,
)
from mam_core.records import REDACTED, Job, Lease, Reason, Status, check_job_id
from mam_core.stores.base import Gate, GateKind, Gates, Progress, Store, Transaction, Want

if TYPE_CHECKING:
    from mam_core.registration import Registered


class LeaseTerms(NamedTuple):
    """Who holds a job, and for how long without a sign of life."""

    owner: str
    ttl_sec: float


class Registry:
    """The one engine: console, command line, worker and scripts all come through here."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock | None = None,
        actor: str = "",
        node: str = "",
        slots: Mapping[str, int] | None = None,
    ) -> None:
        self.store = store
        self.clock = clock or SystemClock()
        self.actor = actor
        self.node = node
        self.slots = slots or {}

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *exc: object) -> None:
        self.store.close()

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
        from mam_core.registration import Registration, checked

        now = self.clock.now()
        prepared = [checked(request, now) for request in requests]
        with self.store.transaction(create=True, progress=progress) as tx:
            batch = Registration(tx, now, allow_collision=allow_collision)
            for values in prepared:
                batch.add(values)
            jobs = list(batch.jobs.values())
            tx.insert(jobs, [self._line(AuditEvent.REGISTERED, job) for job in jobs])
        return batch.answers

    # -- claiming and running --------------------------------------------------------------

    def claim(
        self,
        agent_session: str,
        *,
        agents: Iterable[str] | None = None,
        lease: LeaseTerms | None = None,
        pid: int | None = None,
    ) -> Job | None:
        """The next job of this label, now running as a new attempt; None when there is none.

        Without a lease the job is unsupervised: only its own timeouts end it.
        """
        now = self.clock.now()
        served = None if agents is None else frozenset(agents)
        want = Want(agent_session, served, now, self.slots)
        try:
            with self.store.transaction() as tx:
                job = tx.next_claimable(want)
                if job is None:
                    return None
                terms = self._lease(lease, 0) if lease else None
                new = changes.claimed(job, now, node=self.node, pid=pid, lease=terms)
                tx.put(new, self._moved(job, new, "claim"))
                return new
        except RegistryMissing:
            return None

    def heartbeat(self, job_id: str, lease: LeaseTerms, *, attempt: int | None = None) -> Job:
        """Take or renew the lease of a running job; the answer shows a wish to cancel it."""
        with self._changing(job_id, attempt) as (tx, job):
            if job.status is not Status.RUNNING:
                raise TransitionRefused(
                    f"job {job_id} is {job.status}: only a running job is leased"
                )
            held = job.lease
            if held and held.owner != lease.owner and not self.lease_expired(held):
                raise TransitionRefused(f"job {job_id} is leased to {held.owner}")
            same = held is not None and held.owner == lease.owner
            renewals = held.renewals + 1 if held and same else 0
            new = changes.renewed(job, self.clock.now(), self._lease(lease, renewals))
            taken = None if same else self._line(AuditEvent.LEASED, new, owner=lease.owner)
            tx.put(new, taken)
            return new

    def lease_expired(self, lease: Lease) -> bool:
        """On the clock that counts since boot; another boot's lease is over in any case."""
        if lease.boot_id != self.clock.boot_id():
            return True
        return self.clock.since_boot() - lease.since_boot > lease.ttl_sec

    def next_seq(self, job_id: str, *, attempt: int | None = None) -> int:
        """The number of the job's next event."""
        with self._changing(job_id, attempt) as (tx, job):
            new = changes.touched(job, self.clock.now(), last_seq=job.last_seq + 1)
            tx.put(new, None)
            return new.last_seq

    # -- ending ----------------------------------------------------------------------------

    def finish(
        self,
        job_id: str,
        status: Status,
        *,
        attempt: int | None,
        reason: Reason | None = None,
        detail: str | None = None,
    ) -> Job:
        """End the running attempt as `status`."""
        with self._changing(job_id, attempt) as (tx, job):
            new = changes.ended(job, self.clock.now(), status, reason, detail)
            tx.put(new, self._moved(job, new, "end"))
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
    ) -> Job:
        """Give the running attempt up; the job waits for its next claim."""
        with self._changing(job_id, attempt) as (tx, job):
            now = self.clock.now()
            if job.is_cancelling:
                # The wish of a person outlives the worker that it was told to.
                return self._cancel(tx, job, now, detail or "")
            new = changes.requeued(job, now, reason, detail, failed=failed, not_before=not_before)
            tx.put(new, self._moved(job, new, "requeue"))
            return new

    # -- what a person does ----------------------------------------------------------------

    def set_status(self, job_id: str, status: Status) -> Job:
        """A person's override: any status to any."""
        with self._changing(job_id) as (tx, job):
            if status is job.status:
                return job
            new = changes.overridden(job, self.clock.now(), status, self.node)
            tx.put(new, self._moved(job, new, "override"))
            return new

    def request_cancel(self, job_id: str, why: str = "") -> Job:
        """Cancel a pending or an unsupervised job at once; ask the worker of any other.

        A job that has ended is returned as it is: the race is lost, not an error.
        """
        with self._changing(job_id) as (tx, job):
            now = self.clock.now()
            if job.is_ended or job.is_cancelling:
                return job
            if job.status is Status.RUNNING and job.is_supervised:
                new = changes.cancel_requested(job, now, self.actor)
                tx.put(new, self._line(AuditEvent.CANCEL_REQUESTED, new, why=why))
                return new
            return self._cancel(tx, job, now, why)

    def retry(self, job_id: str) -> Job:
        from mam_core.fields import fresh_token

        with self._changing(job_id) as (tx, job):
            token = fresh_token() if job.auth_token is not None else None
            new = changes.retried(job, self.clock.now(), token)
            tx.put(new, self._moved(job, new, "retry"))
            return new

    def edit(self, job_id: str, values: Mapping[str, Any]) -> Job:
        """Change what a pending job asks for; its audit line keeps the old values."""
        from mam_core import fields
        from mam_core.registration import check_parents

        now = self.clock.now()
        fixed = sorted(set(values) - set(fields.EDITABLE))
        if fixed:
            raise InvalidField(
                f"{fixed[0]!r} cannot be edited; what can: {', '.join(fields.EDITABLE)}"
            )
        new_values = fields.checked(values, now=now)
        with self._changing(job_id) as (tx, job):
            if job.status is not Status.PENDING:
                raise TransitionRefused(
                    f"job {job_id} is {job.status}: only a pending job can be edited"
                )
            if "after" in new_values:
                check_parents(tx, new_values["after"], child=job_id)
            old = job.to_dict()
            new = changes.touched(job, now, **new_values)
            fresh = new.to_dict()
            differing = {
                name: {"from": old[name], "to": fresh[name]}
                for name in new_values
                if old[name] != fresh[name]
            }
            if not differing:
                return job
            tx.put(new, self._line(AuditEvent.EDITED, new, changed=differing))
            return new

    def pause(
        self, kind: GateKind, name: str = "", *, why: str = "", until: str | None = None
    ) -> None:
        now = self.clock.now()
        if until is not None:
            from mam_core import fields

            until = fields.checked({"not_before": until}, now=now)["not_before"]
        with self.store.transaction(create=True) as tx:
            since = stamp(now)
            tx.set_gates(tx.gates().with_gate(Gate(kind, name, since, self.actor, why, until)))

    def resume(self, kind: GateKind, name: str = "") -> bool:
        """Open a gate again; False when it was not closed."""
        try:
            with self.store.transaction() as tx:
                try:
                    gates = tx.gates()
                except StoreError:
                    if kind is not GateKind.ALL:
                        raise
                    tx.set_gates(Gates())  # what cannot be read is written anew, with nothing held
                    return True
                if gates.find(kind, name) is None:
                    return False
                tx.set_gates(gates.without(kind, name))
                return True
        except RegistryMissing:
            return False

    def archive(self, job_ids: Iterable[str]) -> str | None:
        """Take ended jobs out of the registry; the answer is the batch that brings them back."""
        return self.archive_chosen(lambda _: job_ids)

    def archive_chosen(self, choose: Callable[[Transaction], Iterable[str]]) -> str | None:
        """As `archive`, chosen inside the transaction, so that the choice still holds as they go.

        None when none was chosen.
        """
        now = self.clock.now()
        batch = f"{fine_stamp(now).replace(':', '').replace('.', '')}-{os.urandom(2).hex()}"
        with self.store.transaction() as tx:
            jobs = [tx.get(job_id) for job_id in dict.fromkeys(choose(tx))]
            for job in jobs:
                if job.is_live:
                    raise TransitionRefused(f"job {job.job_id} is {job.status}: it is not cleaned")
            if jobs:
                tx.archive(jobs, batch, self._note(AuditEvent.ARCHIVED, batch=batch))
        return batch if jobs else None

    def restore(self, batch: str | None = None) -> list[str]:
        """Bring back a batch, by default the newest."""
        try:
            with self.store.transaction() as tx:
                batches = tx.batches()
                if not batches or (batch is not None and batch not in batches):
                    return []
                chosen = batch or batches[-1]
                return tx.restore(chosen, self._note(AuditEvent.RESTORED, batch=chosen))
        except RegistryMissing:
            return []

    # -- asking ----------------------------------------------------------------------------

    def get(self, job_id: str) -> Job:
        return self.store.get(job_id)

    def refusals(self, job_id: str) -> list[claims.Refusal]:
        """Why a job is not claimed; empty when the next session of its label will take it."""
        job = self.store.get(job_id)
        facts = self.store.facts()
        return list(claims.refusals(job, facts, now=self.clock.now(), slots=self.slots))

    # -- inside ----------------------------------------------------------------------------

    @contextmanager
    def _changing(
        self, job_id: str, attempt: int | None = None
    ) -> Iterator[tuple[Transaction, Job]]:
        """A transaction around one job; a write of an old attempt is audited, then refused."""
        check_job_id(job_id)
        try:
            with self.store.transaction() as tx:
                job = tx.get(job_id)
                stale = changes.stale_attempt(job, attempt)
                if stale is None:
                    yield tx, job
                else:
                    refused = {"attempt": attempt, "why": stale.message}
                    tx.note(job_id, self._note(AuditEvent.REFUSED, **refused))
        except RegistryMissing as missing:
            raise JobNotFound(f"there is no job {job_id}: {missing}") from None
        if stale is not None:
            raise stale

    def _cancel(self, tx: Transaction, job: Job, now: float, why: str) -> Job:
        new = changes.ended(job, now, Status.CANCELLED, Reason.CANCELLED, why or None)
        tx.put(new, self._moved(job, new, "cancel"))
        return new

    def _lease(self, terms: LeaseTerms, renewals: int) -> Lease:
        if not 0 < terms.ttl_sec < 1e10:
            raise InvalidField(f"a lease of {terms.ttl_sec:g} s is none: it must be positive")
        return Lease(
            owner=terms.owner,
            ttl_sec=terms.ttl_sec,
            node=self.node,
            boot_id=self.clock.boot_id(),
            since_boot=round(self.clock.since_boot(), 3),
            renewals=renewals,
            renewed_at=stamp(self.clock.now()),
        )

    def _line(self, event: AuditEvent, job: Job, **more: Any) -> AuditLine:
        facts = {"by": self.actor, "attempt": job.attempt, **more}
        secrets = [text for text in (job.auth_token, job.broker.password) if text]
        if secrets:
            facts = _without(secrets, facts)
        return AuditLine(event, fine_stamp(self.clock.now()), facts, job.revision)

    def _note(self, event: AuditEvent, **more: Any) -> AuditLine:
        return AuditLine(event, fine_stamp(self.clock.now()), {"by": self.actor, **more})

    def _moved(self, old: Job, new: Job, cause: str, **more: Any) -> AuditLine:
        told = {"from": old.status, "to": new.status, "cause": cause, **more}
        for name, value in (("reason", new.reason), ("detail", new.detail)):
            if value is not None:
                told[name] = value
        return self._line(AuditEvent.STATUS_CHANGED, new, **told)


def _without(secrets: Iterable[str], value: Any) -> Any:
    """`value` with the marker wherever somebody typed one of the job's own secrets."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, REDACTED)
        return value
    if isinstance(value, dict):
        return {name: _without(secrets, item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without(secrets, item) for item in value]
    return value
