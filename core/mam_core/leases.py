"""Leases: who holds a running job, and until when.

Dated on the clock that counts since boot, so that no step of the wall clock
ends one or keeps it alive; the lease of another boot is over. Where the store
has a clock of its own, which all hosts share, that one decides.
"""

from __future__ import annotations

from typing import NamedTuple

from mam_core.clock import Clock, stamp
from mam_core.errors import InvalidField, TransitionRefused
from mam_core.record_parts import Lease
from mam_core.records import Job

#: Beyond its lease, another host gets so long until what it ran is surely ended: a look at a store
#: that is cut off may hang for some seconds, and its processes have a grace.
FENCED_SEC = 8.0
#: Of a lease in a store that hosts share, so much may pass before its holder ends what it runs.
_FENCE_SHARE = 0.8


class LeaseTerms(NamedTuple):
    """Who holds a job, and for how long without a sign of life."""

    owner: str
    ttl_sec: float


def new_lease(
    terms: LeaseTerms,
    clock: Clock,
    node: str,
    renewals: int = 0,
    *,
    store_time: float | None = None,
) -> Lease:
    if not 0 < terms.ttl_sec < 1e10:
        raise InvalidField(f"a lease of {terms.ttl_sec:g} s is none: it must be positive")
    return Lease(
        owner=terms.owner,
        ttl_sec=terms.ttl_sec,
        node=node,
        boot_id=clock.boot_id(),
        since_boot=round(clock.since_boot(), 3),
        renewals=renewals,
        renewed_at=stamp(clock.now()),
        store_time=None if store_time is None else round(store_time, 3),
    )


def renewed_lease(
    job: Job, terms: LeaseTerms, clock: Clock, node: str, *, store_time: float | None = None
) -> Lease:
    """The lease that `terms` ask for; one that is somebody else's is not taken while it holds."""
    held = job.lease
    if held is None:
        return new_lease(terms, clock, node, store_time=store_time)
    if held.owner == terms.owner:
        return new_lease(terms, clock, node, held.renewals + 1, store_time=store_time)
    if not is_over(held, clock, store_time):
        raise TransitionRefused(f"job {job.job_id} is leased to {held.owner}")
    return new_lease(terms, clock, node, store_time=store_time)


def fence_sec(lease: Lease) -> float | None:
    """After so long without a renewal the holder must end what it runs; None: never.

    Where hosts share a store, others take a job up when its lease is over, though they cannot see
    whether it still runs. On a store of one host they can, so nobody has to end anything.
    """
    return None if lease.store_time is None else lease.ttl_sec * _FENCE_SHARE


def age(lease: Lease, clock: Clock, store_time: float | None = None) -> float | None:
    """Seconds since it was renewed; None where no clock can tell from here."""
    if store_time is not None and lease.store_time is not None:
        return store_time - lease.store_time
    if lease.boot_id == clock.boot_id():
        return clock.since_boot() - lease.since_boot
    return None


def is_over(lease: Lease, clock: Clock, store_time: float | None = None) -> bool:
    if store_time is not None and lease.store_time is not None:
        return store_time - lease.store_time > lease.ttl_sec
    if lease.boot_id != clock.boot_id():
        return True
    return clock.since_boot() - lease.since_boot > lease.ttl_sec
