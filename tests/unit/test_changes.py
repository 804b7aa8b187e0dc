"""Changes are pure: each verb against each status, without a store in sight."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mam_core import changes
from mam_core.errors import StaleAttempt, TransitionRefused
from mam_core.records import TRANSITIONS, Job, Reason, Status
from tests.support.clock import NOON
from tests.support.jobs import a_full_job

VERBS: dict[str, tuple[Callable[[Job], Job], Status]] = {
    "claim": (
        lambda job: changes.claimed(job, NOON, node="n", pid=1, lease=None),
        Status.RUNNING,
    ),
    "complete": (lambda job: changes.ended(job, NOON, Status.COMPLETED), Status.COMPLETED),
    "fail": (lambda job: changes.ended(job, NOON, Status.ERROR, Reason.EXIT), Status.ERROR),
    "cancel": (lambda job: changes.ended(job, NOON, Status.CANCELLED), Status.CANCELLED),
}


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize(("verb", "target"), VERBS.values(), ids=VERBS.keys())
def test_the_table_of_transitions_is_what_every_verb_obeys(
    verb: Callable[[Job], Job], target: Status, status: Status
) -> None:
    job = a_full_job().evolve(status=status)
    if target in TRANSITIONS[status]:
        new = verb(job)
        assert (new.status, new.revision) == (target, job.revision + 1)
        assert (new.created_at, new.order) == (job.created_at, job.order)
        assert new.updated_at == "2026-06-19T09:30:00Z"
        assert new.extra == job.extra
    else:
        with pytest.raises(TransitionRefused, match=f"is {status} and cannot become {target}"):
            verb(job)


@pytest.mark.parametrize("reason", list(Reason))
def test_only_the_blameless_reasons_count_no_failure(reason: Reason) -> None:
    """Decision 17."""
    before = a_full_job()
    after = changes.ended(before, NOON, Status.ERROR, reason)
    blameless = {Reason.QUOTA, Reason.LOST, Reason.CANCELLED}
    assert after.failures - before.failures == (reason not in blameless)


def test_an_override_keeps_the_failures_and_grows_the_attempt() -> None:
    """Decision 15."""
    job = a_full_job().evolve(status=Status.ERROR)
    again = changes.overridden(job, NOON, Status.RUNNING, "n")
    assert (again.attempt, again.failures, again.status) == (3, 1, Status.RUNNING)


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("attempt", [None, 1, 2, 3])
def test_only_the_running_attempt_may_speak(attempt: int | None, status: Status) -> None:
    """Decision 6."""
    refusal = changes.stale_attempt(a_full_job().evolve(status=status), attempt)
    may_speak = attempt is None or (attempt == 2 and status is Status.RUNNING)
    assert (refusal is None) == may_speak
    assert refusal is None or isinstance(refusal, StaleAttempt)
