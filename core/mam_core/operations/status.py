"""Set a status by hand: a person's override, audited as such."""

from __future__ import annotations

from mam_core.records import Job, Status
from mam_core.registry import Registry


def set_status(registry: Registry, job_id: str, status: str) -> Job:
    """Any status to any. Raises `BadStatus` before anything is touched."""
    return registry.set_status(job_id, Status.parse(status))
