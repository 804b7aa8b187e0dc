"""Changes are pure: each verb against each status, without a store in sight."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mam_core import changes
from mam_core.errors import StaleAttempt, TransitionRefused
from mam_core.records import TRANSITIONS, Job, Reason, Status
from tests.support.clock import NOON
from tests.support.jobs import a_full_job
from tests.support.rows import each_row

VERBS: dict[str, tuple[Callable[[Job], Job], Status]] = {
    "claim": (
        lambda job: changes.claimed(job, NOON, node="n", pid=1, lease=None),
        Status.RUNNING,
    ),
    "complete": (lambda job: changes.ended(job, NOON, Status.COMPLETED), Status.COMPLETED),
    "fail": (lambda job: changes.ended(job, NOON, Status.ERROR, Reason.EXIT), Status.ERROR),
    "cancel": (lambda job: changes.ended(job, NOON, Status.CANCELLED), Status.CANCELLED),
}


@each_row("status", list(Status))
@each_row(("verb", "target"), VERBS.values())
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


@each_row("reason", list(Reason))
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


@each_row("status", list(Status))
@each_row("attempt", [None, 1, 2, 3])
def test_only_the_running_attempt_may_speak(attempt: int | None, status: Status) -> None:
    """Decision 6."""
    refusal = changes.stale_attempt(a_full_job().evolve(status=status), attempt)
    may_speak = attempt is None or (attempt == 2 and status is Status.RUNNING)
    assert (refusal is None) == may_speak
    assert refusal is None or isinstance(refusal, StaleAttempt)


class TestLosses:
    """Decision 17: a loss is no failure, and still no job is lost for ever."""

    def lose(self, job: Job, times: int) -> Job:
        for _ in range(times):
            running = changes.claimed(job, NOON, node="n", pid=None, lease=None)
            job = changes.requeued(running, NOON, Reason.LOST, "its host went away")
        return job

    def pending(self, **fields: object) -> Job:
        return a_full_job().evolve(status=Status.PENDING, losses=0, **fields)

    @pytest.mark.parametrize(("max_attempts", "bound"), [(1, 3), (3, 3), (5, 5)])
    def test_in_a_row_are_bounded(self, max_attempts: int, bound: int) -> None:
        job = self.lose(self.pending(max_attempts=max_attempts, failures=0), bound - 1)
        assert (job.status, job.losses, job.reason) == (Status.PENDING, bound - 1, Reason.LOST)
        job = self.lose(job, 1)
        assert (job.status, job.reason, job.failures) == (Status.ERROR, Reason.LOST, 0)
        assert job.detail == f"lost {bound} times in a row: its host went away"
        assert job.lease is None

    @pytest.mark.parametrize("reason", [Reason.STOPPED, Reason.QUOTA, Reason.EXIT])
    def test_are_counted_anew_after_any_other_end(self, reason: Reason) -> None:
        job = self.lose(self.pending(), 2)
        running = changes.claimed(job, NOON, node="n", pid=None, lease=None)
        job = changes.requeued(running, NOON, reason)
        assert (job.losses, job.status) == (0, Status.PENDING)

    def test_are_forgotten_when_a_person_tries_again(self) -> None:
        job = self.lose(self.pending(), 3)
        assert changes.retried(job, NOON, None).losses == 0
        assert changes.overridden(job, NOON, Status.PENDING, "n").losses == 0


class TestUsageLimits:
    """Decision 17: no failures, so it is their own count that makes each wait longer."""

    def met(self, job: Job, reason: Reason = Reason.QUOTA, *, failed: bool = False) -> Job:
        running = changes.claimed(job, NOON, node="n", pid=None, lease=None)
        return changes.requeued(running, NOON, reason, failed=failed)

    def pending(self) -> Job:
        return a_full_job().evolve(status=Status.PENDING, quota_hits=0, losses=0)

    def test_are_counted(self) -> None:
        assert self.met(self.met(self.pending())).quota_hits == 2

    @pytest.mark.parametrize("reason", [Reason.LOST, Reason.STOPPED])
    def test_are_not_forgotten_by_an_attempt_that_nobody_heard_of(self, reason: Reason) -> None:
        """Else a limit and a lost worker, in turn, would go round without an end."""
        job = self.met(self.met(self.pending()), reason)
        assert (job.quota_hits, self.met(job).quota_hits) == (1, 2)

    def test_are_counted_anew_after_a_failure(self) -> None:
        assert self.met(self.met(self.pending()), Reason.EXIT, failed=True).quota_hits == 0

    def test_are_forgotten_when_a_person_tries_again(self) -> None:
        job = self.met(self.pending())
        ended = job.evolve(status=Status.CANCELLED)
        assert changes.retried(ended, NOON, None).quota_hits == 0
        assert changes.overridden(job, NOON, Status.PENDING, "n").quota_hits == 0


class TestSessions:
    """`retry --resume`: the agent goes on where it was."""

    def ended(self, **fields: object) -> Job:
        return a_full_job().evolve(status=Status.ERROR, **fields)

    def test_of_the_last_attempt_is_taken_up(self) -> None:
        job = self.ended(agent_session_id="s-2", resume=None)
        again = changes.retried(job, NOON, None, resume=True)
        assert again.resume == "s-2"
        running = changes.claimed(again, NOON, node="n", pid=None, lease=None)
        assert (running.resume, running.agent_session_id) == ("s-2", "s-2")
        assert changes.in_session(running, NOON, "s-3").agent_session_id == "s-3"

    def test_is_not_taken_up_unasked(self) -> None:
        again = changes.retried(self.ended(agent_session_id="s-2", resume="s-1"), NOON, None)
        assert again.resume is None
        running = changes.claimed(again, NOON, node="n", pid=None, lease=None)
        assert running.agent_session_id is None

    def test_without_one_there_is_nothing_to_resume(self) -> None:
        with pytest.raises(TransitionRefused, match="not known in which session"):
            changes.retried(self.ended(agent_session_id=None), NOON, None, resume=True)

    @pytest.mark.parametrize(("failed", "kept"), [(True, None), (False, "s-1")])
    def test_a_failure_lets_the_next_try_begin_afresh(self, failed: bool, kept: str | None) -> None:
        running = a_full_job().evolve(resume="s-1")
        again = changes.requeued(running, NOON, Reason.STOPPED, failed=failed)
        assert again.resume == kept
