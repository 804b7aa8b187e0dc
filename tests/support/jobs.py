"""Jobs for tests: what a person would ask for, and records as they stand on disk."""

from __future__ import annotations

from typing import Any

from mam_core.leases import LeaseTerms
from mam_core.messages import Message, MessageKind
from mam_core.record_parts import Broker, Lease
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry

LABEL = "alpha"
WORKER = LeaseTerms("worker-1", 30.0)


def request(prompt: str = "count the stars", **fields: Any) -> dict[str, Any]:
    return {"prompt": prompt, "agent": "shell", "agent_session": LABEL, **fields}


def add(registry: Registry, prompt: str = "count the stars", **fields: Any) -> str:
    """Register one job and answer its id."""
    return registry.register([request(prompt, **fields)])[0].job_id


def claim_all(registry: Registry, label: str = LABEL) -> list[str]:
    """Claim until nothing is left; the ids in the order in which they came."""
    taken = []
    while (job := registry.claim(label)) is not None:
        taken.append(job.job_id)
    return taken


def running(registry: Registry, *, lease: LeaseTerms | None = None, **fields: Any) -> Job:
    """A job that has been claimed."""
    job_id = add(registry, **fields)
    job = registry.claim(fields.get("agent_session", LABEL), lease=lease)
    assert job is not None
    assert job.job_id == job_id, "another job was claimed before this one"
    return job


def in_status(registry: Registry, status: Status, **fields: Any) -> str:
    """A job brought into `status` by an operator's hand."""
    job_id = add(registry, **fields)
    registry.set_status(job_id, status)
    return job_id


def a_full_job(job_id: str = "abc12345") -> Job:
    """A record with something in every field."""
    return Job(
        job_id,
        Status.RUNNING,
        created_at="2026-06-19T09:30:00Z",
        updated_at="2026-06-19T09:31:00Z",
        prompt="별을 세어라…\n\"quoted\" and 'so'",
        agent="claude-code",
        agent_session=LABEL,
        broker=Broker("broker.lan", 8883, True, "user", "broker-password", {"keepalive": 30}),
        topic_prefix=f"python/mqtt/jobs/{job_id}",
        timeout_sec=60,
        idle_timeout_sec=2.5,
        expected_artifacts=("out.txt", "a/b.md"),
        last_seq=7,
        auth_token="a-token-of-the-job",
        order=1781861400000000,
        revision=9,
        attempt=2,
        failures=1,
        max_attempts=3,
        losses=1,
        quota_hits=1,
        priority=-4,
        group="night",
        key="nightly",
        after=("parent01",),
        not_before="2026-06-19T09:00:00Z",
        model="big",
        workdir="/",
        validate="true",
        memory_max=2**33,
        max_cost=2.5,
        max_tokens=200_000,
        resume="session-1",
        agent_session_id="session-1",
        node="host",
        pid=4711,
        lease=Lease("worker-1", 30.0, "host", "boot-one", 12.5, 3, "2026-06-19T09:31:00Z"),
        started_at="2026-06-19T09:30:30Z",
        ended_at=None,
        reason=Reason.LOST,
        detail="its host went away",
        cancel_requested_at="2026-06-19T09:30:59Z",
        cancel_requested_by="ann",
        left_behind="left 1 changed file",
        messages=(
            Message(3, MessageKind.ANSWER, "y", "ann", "2026-06-19T09:30:40.000Z", 2, to="q-1"),
        ),
        extra={"from_the_future": {"deep": [1, 2.5, None, "x"]}},
    )
