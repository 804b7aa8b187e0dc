"""A cancel that is taken back: exactly the jobs that were cancelled by it, and no others."""

from __future__ import annotations

from typing import Any

from mam_core.leases import LeaseTerms
from mam_core.operations.cancel import cancel
from mam_core.operations.retry import retry
from mam_core.operations.take_back import cancel_to_take_back, take_back
from mam_core.records import Status
from mam_core.registry import Registry
from tests.support.clock import FakeClock


def add(registry: Registry, **more: Any) -> str:
    request = {"prompt": "Do it", "agent": "codex", "agent_session": "tmux:c", **more}
    return registry.register([request])[0].job_id


def test_only_what_we_cancelled_is_queued_again(registry: Registry, clock: FakeClock) -> None:
    ours, others, ended = (add(registry, prompt=f"Job {n}") for n in range(3))
    cancel(registry, [others])
    registry.claim("tmux:c")
    clock.pass_time(5)
    outcomes, cancels = cancel_to_take_back(registry, [ours, others, ended, "gone"])
    assert [one.ok for one in outcomes] == [True, True, True, False]
    assert [one.job_id for one in cancels] == [ours, ended]
    done, later = take_back(registry, cancels)
    assert [one.ok for one in done] == [True, True]
    assert not later
    assert registry.get(ours).status is registry.get(ended).status is Status.PENDING
    assert registry.get(others).status is Status.CANCELLED


def test_one_that_went_its_own_way_is_left_alone(registry: Registry, clock: FakeClock) -> None:
    job_id = add(registry, not_before="+1h")
    _, cancels = cancel_to_take_back(registry, [job_id])
    assert cancels[0].not_before is not None
    retry(registry, [job_id])
    clock.pass_time(5)
    cancel(registry, [job_id])  # somebody else, later
    (outcome,), later = take_back(registry, cancels)
    assert (outcome.ok, later) == (False, [])
    assert outcome.message == f"job {job_id} is left alone: it is cancelled, and not by that cancel"
    assert registry.get(job_id).status is Status.CANCELLED


def test_one_whose_worker_has_not_ended_it_can_be_tried_later(registry: Registry) -> None:
    job_id = add(registry)
    registry.claim("tmux:c", lease=LeaseTerms("worker-1", 30.0))
    _, cancels = cancel_to_take_back(registry, [job_id])
    (outcome,), later = take_back(registry, cancels)
    assert "is still cancelling" in outcome.message
    assert later == cancels
    registry.finish(job_id, Status.CANCELLED, attempt=1)
    (outcome,), later = take_back(registry, cancels)
    assert (outcome.ok, later) == (True, [])
    assert registry.get(job_id).status is Status.PENDING
