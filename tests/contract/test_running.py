"""A running job: attempts and their fence, leases, event numbers, and how it ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mam_core.errors import InvalidField, JobNotFound, StaleAttempt, TransitionRefused
from mam_core.leases import LeaseTerms
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry
from tests.contract.conftest import MakeRegistry
from tests.support.clock import FakeClock
from tests.support.jobs import WORKER, add, in_status, running
from tests.support.rows import each_row, every_row

HOUR = 3600.0

#: Everything that a worker says in the name of its attempt.
SPOKEN: dict[str, Callable[[Registry, str, int], object]] = {
    "finish": lambda r, job_id, n: r.finish(job_id, Status.COMPLETED, attempt=n),
    "requeue": lambda r, job_id, n: r.requeue(job_id, Reason.LOST, attempt=n),
    "heartbeat": lambda r, job_id, n: r.heartbeat(job_id, WORKER, attempt=n),
    "next_seq": lambda r, job_id, n: r.next_seq(job_id, attempt=n),
}
every_word = each_row("word", SPOKEN)


class TestTheFence:
    @every_word
    def test_an_old_attempt_is_refused_and_audited(self, registry: Registry, word: str) -> None:
        """Decision 6: a zombie speaks after its job was given to somebody else."""
        job = running(registry)
        registry.requeue(job.job_id, Reason.LOST, attempt=1)
        again = registry.claim("alpha")
        assert again is not None
        assert again.attempt == 2
        with pytest.raises(StaleAttempt, match="is at attempt 2: a write of attempt 1 is refused"):
            SPOKEN[word](registry, job.job_id, 1)
        assert registry.get(job.job_id) == again, "nothing of it reached the record"
        last = list(registry.store.audit.events(job.job_id))[-1]
        assert (last["event"], last["attempt"]) == ("refused", 1)
        assert "attempt 1 is refused" in last["why"]

    @every_word
    def test_an_attempt_that_is_over_has_nothing_to_say(
        self, registry: Registry, word: str
    ) -> None:
        """G14 at its root: completed stays completed."""
        job = running(registry)
        ended = registry.finish(job.job_id, Status.COMPLETED, attempt=1)
        with pytest.raises(StaleAttempt, match="is over: it is completed"):
            SPOKEN[word](registry, job.job_id, 1)
        assert registry.get(job.job_id) == ended

    def test_a_zombie_cannot_end_a_job_that_waits_again(self, registry: Registry) -> None:
        job = running(registry)
        registry.requeue(job.job_id, Reason.LOST, attempt=1)
        with pytest.raises(StaleAttempt):
            registry.finish(job.job_id, Status.ERROR, attempt=1, reason=Reason.EXIT)
        assert registry.get(job.job_id).status is Status.PENDING

    def test_numbers_of_attempts_are_never_used_again(self, registry: Registry) -> None:
        """Decision 17."""
        job_id = add(registry)
        seen = []
        for _ in range(3):
            job = registry.claim("alpha")
            assert job is not None
            seen.append(job.attempt)
            registry.finish(job_id, Status.ERROR, attempt=job.attempt, reason=Reason.EXIT)
            registry.retry(job_id)
        registry.set_status(job_id, Status.RUNNING)
        seen.append(registry.get(job_id).attempt)
        assert seen == [1, 2, 3, 4]

    def test_a_new_attempt_shows_nothing_of_the_old_one(self, registry: Registry) -> None:
        """Decision 6: an old error is never shown as the current one."""
        job = running(registry, lease=WORKER)
        registry.requeue(job.job_id, Reason.LOST, attempt=1, detail="its host went away")
        waiting = registry.get(job.job_id)
        assert (waiting.reason, waiting.detail) == (Reason.LOST, "its host went away")
        assert (waiting.lease, waiting.pid, waiting.started_at) == (None, None, None)
        again = registry.claim("alpha")
        assert again is not None
        assert (again.reason, again.detail, again.lease) == (None, None, None)


class TestEnding:
    def test_a_job_ends_with_its_reason_and_counts_its_failures(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        """Decisions 8 and 17: quota and a lost host are no failures."""
        endings = [
            (Status.COMPLETED, None, 0),
            (Status.ERROR, Reason.EXIT, 1),
            (Status.ERROR, Reason.TIMEOUT, 1),
            (Status.ERROR, Reason.VALIDATION, 1),
            (Status.ERROR, Reason.OOM, 1),
            (Status.ERROR, Reason.QUOTA, 0),
            (Status.ERROR, Reason.LOST, 0),
            (Status.CANCELLED, Reason.CANCELLED, 0),
        ]
        jobs = [running(registry, lease=WORKER).job_id for _ in endings]
        clock.pass_time(60)
        with every_row() as rows:
            for job_id, (status, reason, failures) in zip(jobs, endings, strict=True):
                with rows.row(status, reason):
                    detail = "so it went" if reason else None
                    ended = registry.finish(job_id, status, attempt=1, reason=reason, detail=detail)
                    assert (ended.status, ended.reason, ended.failures) == (
                        status,
                        reason,
                        failures,
                    )
                    assert ended.detail == detail
                    assert (ended.ended_at, ended.updated_at) == ("2026-06-19T09:31:00Z",) * 2
                    assert ended.started_at == "2026-06-19T09:30:00Z"
                    assert (ended.lease, ended.pid) == (None, None)
                    assert registry.get(job_id) == ended

    @each_row("status", [Status.COMPLETED, Status.ERROR])
    def test_a_job_that_nobody_runs_cannot_end_well_or_badly(
        self, registry: Registry, status: Status
    ) -> None:
        job_id = add(registry)
        with pytest.raises(TransitionRefused, match=f"is pending and cannot become {status}"):
            registry.finish(job_id, status, attempt=None)
        assert registry.get(job_id).status is Status.PENDING

    def test_an_ended_job_does_not_end_again(self, registry: Registry) -> None:
        job_id = in_status(registry, Status.COMPLETED)
        for status in Status:
            with pytest.raises(TransitionRefused):
                registry.finish(job_id, status, attempt=None)

    def test_a_job_cannot_be_finished_into_running(self, registry: Registry) -> None:
        job = running(registry)
        with pytest.raises(TransitionRefused):
            registry.finish(job.job_id, Status.RUNNING, attempt=1)

    def test_an_unknown_job_is_said_to_be_unknown(self, registry: Registry) -> None:
        for _ in range(2):  # before there is a registry, and in one
            with pytest.raises(JobNotFound, match="there is no job nosuchjob"):
                registry.finish("nosuchjob", Status.COMPLETED, attempt=1)
            add(registry)


class TestRequeue:
    def test_it_counts_a_failure_only_when_told_so(self, registry: Registry) -> None:
        """Decision 17."""
        job = running(registry, max_attempts=5)
        assert registry.requeue(job.job_id, Reason.LOST, attempt=1).failures == 0
        registry.claim("alpha")
        assert registry.requeue(job.job_id, Reason.QUOTA, attempt=2).failures == 0
        registry.claim("alpha")
        assert registry.requeue(job.job_id, Reason.EXIT, attempt=3, failed=True).failures == 1

    def test_it_can_wait_before_the_next_claim(self, registry: Registry, clock: FakeClock) -> None:
        job = running(registry)
        back_off = clock.now() + 30
        waiting = registry.requeue(job.job_id, Reason.EXIT, attempt=1, not_before=back_off)
        assert waiting.not_before == "2026-06-19T09:30:30Z"
        assert registry.claim("alpha") is None
        clock.pass_time(30)
        assert registry.claim("alpha") is not None

    def test_it_keeps_its_place_in_the_order(self, registry: Registry) -> None:
        first = running(registry)
        add(registry, "later")
        registry.requeue(first.job_id, Reason.LOST, attempt=1)
        job = registry.claim("alpha")
        assert job is not None
        assert job.job_id == first.job_id

    def test_only_a_running_job_is_given_up(self, registry: Registry) -> None:
        job_id = add(registry)
        with pytest.raises(TransitionRefused):
            registry.requeue(job_id, Reason.LOST, attempt=None)

    def test_a_job_that_a_person_wants_cancelled_is_not_handed_out_again(
        self, registry: Registry
    ) -> None:
        """O14: the wish outlives the worker that it was told to."""
        job = running(registry, lease=WORKER)
        registry.request_cancel(job.job_id)
        registry.requeue(job.job_id, Reason.LOST, attempt=1)
        assert registry.claim("alpha") is None


class TestLeases:
    def test_a_script_may_take_a_lease_and_renew_it(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        """Decision 14."""
        job = running(registry)
        taken = registry.heartbeat(job.job_id, WORKER)
        assert taken.lease is not None
        assert taken.lease.renewals == 0
        clock.pass_time(10)
        renewed = registry.heartbeat(job.job_id, WORKER, attempt=1)
        assert renewed.lease is not None
        assert (renewed.lease.renewals, renewed.lease.since_boot) == (1, 1010.0)
        assert renewed.lease.renewed_at == "2026-06-19T09:30:10Z"
        assert renewed.updated_at == "2026-06-19T09:30:10Z"

    def test_another_owner_waits_for_the_end_of_the_lease(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        job = running(registry, lease=WORKER)
        other = LeaseTerms("worker-2", 30.0)
        clock.pass_time(30)
        with pytest.raises(TransitionRefused, match="is leased to worker-1"):
            registry.heartbeat(job.job_id, other)
        clock.pass_time(0.1)
        taken = registry.heartbeat(job.job_id, other)
        assert taken.lease is not None
        assert (taken.lease.owner, taken.lease.renewals) == ("worker-2", 0)

    @pytest.mark.parametrize("jump", [HOUR, -HOUR])
    def test_a_jump_of_the_wall_clock_neither_ends_nor_keeps_a_lease(
        self, registry: Registry, clock: FakeClock, jump: float
    ) -> None:
        """Leases are measured since boot."""
        job = running(registry, lease=WORKER)
        assert job.lease is not None
        clock.wall += jump
        assert not registry.lease_expired(job.lease)
        with pytest.raises(TransitionRefused):
            registry.heartbeat(job.job_id, LeaseTerms("worker-2", 30.0))
        clock.up += 31
        assert registry.lease_expired(job.lease)

    def test_a_lease_of_another_boot_is_over(self, registry: Registry, clock: FakeClock) -> None:
        job = running(registry, lease=WORKER)
        assert job.lease is not None
        clock.reboot()
        assert registry.lease_expired(job.lease)
        taken = registry.heartbeat(job.job_id, LeaseTerms("worker-2", 30.0))
        assert taken.lease is not None
        assert taken.lease.boot_id == "boot-two"

    @each_row("status", [Status.PENDING, Status.COMPLETED, Status.ERROR, Status.CANCELLED])
    def test_only_a_running_job_is_leased(self, registry: Registry, status: Status) -> None:
        job_id = add(registry)
        registry.set_status(job_id, status)
        with pytest.raises(TransitionRefused, match="only a running job is leased"):
            registry.heartbeat(job_id, WORKER)

    def test_a_heartbeat_brings_the_wish_to_cancel_back(self, registry: Registry) -> None:
        job = running(registry, lease=WORKER)
        registry.request_cancel(job.job_id)
        assert registry.heartbeat(job.job_id, WORKER, attempt=1).is_cancelling

    @each_row("ttl", [0.0, -1.0, float("nan"), float("inf")])
    def test_an_impossible_lease_is_refused_and_the_record_stays_readable(
        self, registry: Registry, ttl: float
    ) -> None:
        """Nothing is ever written that cannot be read again."""
        job = running(registry)
        with pytest.raises(InvalidField):
            registry.heartbeat(job.job_id, LeaseTerms("worker-1", ttl))
        assert registry.get(job.job_id) == job


class TestEventNumbers:
    def test_they_count_from_one_and_date_the_record(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        """G3, A9, A13, D2."""
        job = running(registry)
        clock.pass_time(3)
        assert [registry.next_seq(job.job_id) for _ in range(5)] == [1, 2, 3, 4, 5]
        after = registry.get(job.job_id)
        assert (after.last_seq, after.updated_at) == (5, "2026-06-19T09:30:03Z")
        assert after.created_at == "2026-06-19T09:30:00Z"

    def test_they_go_on_over_attempts_and_handles(self, make_registry: MakeRegistry) -> None:
        """G3."""
        one, two = make_registry(), make_registry()
        job = running(one)
        assert one.next_seq(job.job_id, attempt=1) == 1
        one.requeue(job.job_id, Reason.LOST, attempt=1)
        two.claim("alpha")
        assert two.next_seq(job.job_id, attempt=2) == 2
        assert one.next_seq(job.job_id) == 3

    def test_jobs_of_one_label_count_apart(self, registry: Registry) -> None:
        """A16."""
        ids = [add(registry, f"job {i}") for i in range(10)]
        for turn in range(1, 4):
            assert [registry.next_seq(job_id) for job_id in ids] == [turn] * 10

    def test_revisions_grow_with_every_write(self, registry: Registry) -> None:
        job_id = add(registry)
        revisions = [registry.get(job_id).revision]
        steps: list[Callable[[], Job | int | None]] = [
            lambda: registry.edit(job_id, {"priority": 3}),
            lambda: registry.claim("alpha"),
            lambda: registry.next_seq(job_id),
            lambda: registry.heartbeat(job_id, WORKER),
            lambda: registry.finish(job_id, Status.ERROR, attempt=1, reason=Reason.EXIT),
            lambda: registry.retry(job_id),
        ]
        for step in steps:
            step()
            revisions.append(registry.get(job_id).revision)
        assert revisions == [1, 2, 3, 4, 5, 6, 7]
