"""Claim the next job of a session, for an agent that runs it without a worker."""

from __future__ import annotations

from collections.abc import Iterable

from mam_core.audit import warn
from mam_core.records import Job
from mam_core.registry import Registry


def pick(registry: Registry, agent_session: str, agents: Iterable[str] | None = None) -> Job | None:
    """The job, now running and unsupervised; None when there is none to be had."""
    job = registry.claim(agent_session, agents=agents)
    for bad in registry.store.unreadable():
        warn(f"{bad.job_id}.json is passed over: {bad.error}")
    return job
