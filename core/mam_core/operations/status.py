"""Set a status by hand: a person's override, audited as such."""

from __future__ import annotations

from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.rights import Right


def set_status(registry: Registry, job_id: str, status: str) -> Job:
    """Any status to any. Raises `BadStatus` before anything is touched."""
    wanted = Status.parse(status)
    registry.check_allowed(Right.STATUS, job_id)
    return registry.set_status(job_id, wanted)
