"""A sign of life from a script that runs a job itself."""

from __future__ import annotations

from mam_core.leases import LeaseTerms
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.rights import Right

DEFAULT_LEASE_SEC = 30


def heartbeat(
    registry: Registry,
    job_id: str,
    ttl_sec: float = DEFAULT_LEASE_SEC,
    *,
    owner: str | None = None,
    attempt: int | None = None,
) -> Job:
    """Take or renew the lease; a script should look at `is_cancelling` of the answer.

    Without an owner the lease is that of this user on this host, so that the
    heartbeats of one script, each a process of its own, renew one lease.
    """
    registry.check_allowed(Right.HEARTBEAT, job_id)
    if owner:
        from mam_core.fields import check_name

        check_name("owner", owner)
    terms = LeaseTerms(owner or f"{registry.actor}@{registry.node}", ttl_sec)
    return registry.heartbeat(job_id, terms, attempt=attempt)
