"""The functions of the registry document, with its signatures.

Scripts written for the original import these; everything else uses `Registry`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from mam_core.operations.status import set_status
from mam_core.records import Job
from mam_core.wiring import open_registry
from mam_core.wiring import registry_lock as _registry_lock


def register_job(
    prompt: str, *, agent: str, agent_session: str, registry_dir: str | None = None, **fields: Any
) -> str:
    """Register one job and answer its id."""
    request = {"prompt": prompt, "agent": agent, "agent_session": agent_session, **fields}
    with open_registry(registry_dir) as registry:
        return registry.register([request])[0].job_id


def pick_pending(
    agent_session: str, registry_dir: str | None = None, *, agents: Iterable[str] | None = None
) -> str | None:
    """Claim the oldest pending job of this label; None when there is none."""
    with open_registry(registry_dir) as registry:
        job = registry.claim(agent_session, agents=agents)
        return job.job_id if job else None


def update_status(job_id: str, status: str, registry_dir: str | None = None) -> Job:
    """Set a status by hand: any to any, audited as an override."""
    with open_registry(registry_dir) as registry:
        return set_status(registry, job_id, status)


def next_seq(job_id: str, registry_dir: str | None = None) -> int:
    """The number of the job's next event, counted in its record."""
    with open_registry(registry_dir) as registry:
        return registry.next_seq(job_id)


def registry_lock(registry_dir: str | None = None) -> AbstractContextManager[object]:
    """``with registry_lock(): …`` holds the lock that every change of ours takes."""
    return _registry_lock(registry_dir)
