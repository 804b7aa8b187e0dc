"""What a person does now and then: edit what waits, hold claims back, clear away what has ended.

Apart from the registry, whose other verbs run a hundred times as often and
should not pay for reading these.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mam_core import changes, fields
from mam_core.audit import AuditEvent
from mam_core.claims import slots_of
from mam_core.clock import fine_stamp, stamp
from mam_core.errors import InvalidField, RegistryMissing, StoreError, TransitionRefused
from mam_core.records import Job, Status
from mam_core.registration import check_parents
from mam_core.stores.base import Gate, GateKind, Gates, Paper, Transaction

if TYPE_CHECKING:
    from mam_core.acts import Act
    from mam_core.registry import Registry


def edit(registry: Registry, job_id: str, values: Mapping[str, Any]) -> Job:
    now = registry.clock.now()
    fixed = sorted(set(values) - set(fields.EDITABLE))
    if fixed:
        raise InvalidField(f"{fixed[0]!r} cannot be edited; what can: {', '.join(fields.EDITABLE)}")
    new_values = fields.checked(values, now=now)
    with registry.changing(job_id) as (tx, job):
        if job.status is not Status.PENDING:
            raise TransitionRefused(
                f"job {job_id} is {job.status}: only a pending job can be edited"
            )
        if "after" in new_values:
            check_parents(tx, new_values["after"], child=job_id)
        old = job.to_dict()
        new = changes.touched(job, now, **new_values)
        if "validate" in new_values or "workdir" in new_values:
            from mam_core.work.check_files import digests

            new = new.evolve(check_files=digests(new.validate, new.workdir))
        fresh = new.to_dict()
        differing = {
            name: {"from": old[name], "to": fresh[name]}
            for name in new_values
            if old[name] != fresh[name]
        }
        if not differing:
            return job
        tx.put(new, registry.line(AuditEvent.EDITED, new, changed=differing))
        return new


def pause(registry: Registry, kind: GateKind, name: str, *, why: str, until: str | None) -> None:
    now = registry.clock.now()
    if until is not None:
        until = fields.checked({"not_before": until}, now=now)["not_before"]
    gate = Gate(kind, name, stamp(now), registry.actor, why, until)
    with registry.store.transaction(create=True) as tx:
        tx.set_gates(tx.gates_to_change().with_gate(gate))


def resume(registry: Registry, kind: GateKind, name: str) -> bool:
    try:
        with registry.store.transaction() as tx:
            try:
                gates = tx.gates_to_change()
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


def set_slots(registry: Registry, group: str, slots: int | None, *, why: str) -> Act:
    """What happened, as it stands in the acts; a change that changes nothing is told, too."""
    from mam_core import acts

    now = registry.clock.now()
    with registry.store.transaction(create=True) as tx:
        paper = acts.decode(tx.paper(Paper.ACTS))
        gates = tx.gates_to_change()
        before = slots_of(group, gates, registry.slots)
        after = registry.slots.get(group) if slots is None else slots
        deed = acts.Deed.RESET if slots is None else acts.Deed.SET
        act = acts.Act(fine_stamp(now), registry.actor, deed, group, before, after, why)
        tx.set_gates(gates.with_slots(group, slots))
        tx.set_paper(Paper.ACTS, acts.encode(paper.with_act(act)))
    return act


def archive(registry: Registry, choose: Callable[[Transaction], Iterable[str]]) -> str | None:
    now = registry.clock.now()
    batch = f"{fine_stamp(now).replace(':', '').replace('.', '')}-{os.urandom(2).hex()}"
    with registry.store.transaction() as tx:
        jobs = [tx.get(job_id) for job_id in dict.fromkeys(choose(tx))]
        for job in jobs:
            if job.is_live:
                raise TransitionRefused(f"job {job.job_id} is {job.status}: it is not cleaned")
        if jobs:
            tx.archive(jobs, batch, registry.note(AuditEvent.ARCHIVED, batch=batch))
    return batch if jobs else None


def restore(registry: Registry, batch: str | None) -> list[str]:
    try:
        with registry.store.transaction() as tx:
            batches = tx.batches()
            if not batches or (batch is not None and batch not in batches):
                return []
            chosen = batch or batches[-1]
            return tx.restore(chosen, registry.note(AuditEvent.RESTORED, batch=chosen))
    except RegistryMissing:
        return []
