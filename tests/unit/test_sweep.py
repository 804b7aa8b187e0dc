"""Which jobs a sweep takes back or ends, by which witness, and which it leaves alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from mam_core.audit import AuditEvent, AuditLog
from mam_core.clock import SystemClock
from mam_core.disk import Folder
from mam_core.errors import StaleAttempt, StoreError
from mam_core.leases import LeaseTerms
from mam_core.process_mark import ProcessMark
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry
from mam_core.stores.files import FilesStore
from mam_core.stores.index import Index
from mam_core.work.marks import FILE, AttemptMark
from mam_core.work.orders import new_token
from mam_core.work.sweep import Act, Sweep, Swept
from mam_core.work.witnesses import Witness
from tests.support.clock import FakeClock
from tests.support.handles import close_later
from tests.support.jobs import LABEL, add, running
from tests.support.process_marks import dead, us

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

NODE = "host"


@pytest.fixture
def clock() -> FakeClock:
    """Stands still, in the boot that the processes of these tests are really of."""
    return FakeClock(boot=SystemClock().boot_id())


@pytest.fixture
def sweep(registry: Registry) -> Sweep:
    return Sweep(registry, grace_sec=0.2)


def terms(worker: ProcessMark, node: str = NODE) -> LeaseTerms:
    return LeaseTerms(f"{node}:{worker.pid}:{worker.started}:0", 30.0)


def leave_mark(registry: Registry, job: Job, mark: AttemptMark) -> Path:
    path = Path(registry.store.audit.path, job.job_id, "attempts", str(job.attempt))
    with Folder.open(str(path), create=True) as folder:
        mark.write(folder)
    return path / FILE


def a_mark(supervisor: ProcessMark, node: str = NODE) -> AttemptMark:
    return AttemptMark.of(new_token(), supervisor, node)


def attempt(registry: Registry, worker: ProcessMark, supervisor: ProcessMark | None) -> Job:
    """A job that a worker holds, whose supervisor was started, if there is one."""
    job = running(registry, lease=terms(worker))
    if supervisor is not None:
        leave_mark(registry, job, a_mark(supervisor))
    return job


def only(swept: list[Swept]) -> Swept:
    assert len(swept) == 1, swept
    return swept[0]


def lines(registry: Registry, job: Job, event: AuditEvent) -> list[dict[str, Any]]:
    return [one for one in registry.store.audit.events(job.job_id) if one["event"] == event]


class TestALeaseThatExpired:
    def test_before_that_nothing_happens(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        job = attempt(registry, us(), dead())
        clock.pass_time(29)
        assert sweep.once() == []
        assert registry.get(job.job_id) == job

    def test_with_nothing_left_gives_the_job_back(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        """Decision 8, 17: lost is no failure."""
        job = attempt(registry, us(), dead())
        clock.pass_time(31)
        swept = only(sweep.once())
        assert swept[:4] == (job.job_id, 1, Act.REQUEUED, Witness.LEASE)
        back = registry.get(job.job_id)
        assert (back.status, back.reason, back.failures) == (Status.PENDING, Reason.LOST, 0)
        assert (back.lease, back.attempt, back.losses) == (None, 1, 1)
        assert "has expired, and nothing of it is left" in str(back.detail)

    def test_is_told_as_an_event(self, registry: Registry, sweep: Sweep, clock: FakeClock) -> None:
        job = attempt(registry, us(), dead())
        clock.pass_time(31)
        sweep.once()
        (post,) = registry.store.outbox.posts(10)
        told = json.loads(post.payload)
        assert (told["event"], told["seq"], told["attempt"]) == ("queued", 1, 1)
        assert told["data"] == {"witness": "lease"}
        assert registry.get(job.job_id).last_seq == 1

    def test_of_a_worker_that_had_started_nothing(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        job = attempt(registry, us(), None)
        clock.pass_time(31)
        assert only(sweep.once()).act is Act.REQUEUED
        assert "it had started nothing" in str(registry.get(job.job_id).detail)

    def test_of_a_script_counts_like_any_other(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        """Decision 14: `mam heartbeat` takes a lease for scripts that want one."""
        running(registry, lease=LeaseTerms("ann@host", 30))
        clock.pass_time(29)
        assert sweep.once() == []
        clock.pass_time(2)
        assert only(sweep.once()).act is Act.REQUEUED

    def test_of_a_job_that_was_to_be_cancelled_ends_it_as_cancelled(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        job = attempt(registry, us(), dead())
        registry.request_cancel(job.job_id)
        clock.pass_time(31)
        assert only(sweep.once()).act is Act.CANCELLED
        assert registry.get(job.job_id).status is Status.CANCELLED

    def test_again_and_again_ends_the_job(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        """A retry storm is impossible."""
        job = attempt(registry, us(), dead())
        acts = []
        for number in (1, 2, 3):
            clock.pass_time(31)
            acts.append(only(Sweep(registry).once()).act)
            if number < 3:
                assert registry.claim(LABEL, lease=terms(us())) is not None
        assert acts == [Act.REQUEUED, Act.REQUEUED, Act.ENDED]
        over = registry.get(job.job_id)
        assert (over.status, over.reason) == (Status.ERROR, Reason.LOST)
        assert "lost 3 times in a row" in str(over.detail)
        assert registry.claim(LABEL) is None

    def test_that_is_renewed_in_that_moment_keeps_its_job(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        """A worker that wakes up between the look and the change has not lost anything."""
        job = attempt(registry, us(), dead())
        clock.pass_time(31)
        store = registry.store

        class Late(Registry):
            def requeue(self, *args: Any, **given: Any) -> Job:
                registry.heartbeat(job.job_id, terms(us()), attempt=1)
                return super().requeue(*args, **given)

        assert Sweep(Late(store, clock=clock, node=NODE)).once() == []
        now = registry.get(job.job_id)
        assert (now.status, now.attempt) == (Status.RUNNING, 1)
        assert not lines(registry, job, AuditEvent.REFUSED), "nobody has made a mistake"

    def test_the_old_attempt_cannot_speak_any_more(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        """Decision 6: a zombie worker cannot end the newer attempt."""
        job = attempt(registry, us(), dead())
        clock.pass_time(31)
        sweep.once()
        newer = registry.claim(LABEL, lease=terms(us()))
        assert newer is not None
        for act in (
            lambda: registry.finish(job.job_id, Status.COMPLETED, attempt=1),
            lambda: registry.requeue(job.job_id, Reason.LOST, attempt=1),
            lambda: registry.heartbeat(job.job_id, terms(us()), attempt=1),
            lambda: registry.publish(job.job_id, "progress", attempt=1),
        ):
            with pytest.raises(StaleAttempt):
                act()
        assert registry.get(job.job_id) == newer
        assert len(lines(registry, job, AuditEvent.REFUSED)) == 4


class TestABoot:
    def test_trusts_no_pid_of_the_one_before(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        """A reboot: the worker's and the supervisor's pids are ours, and mean nobody."""
        job = attempt(registry, us(), us())
        clock.reboot()
        swept = only(sweep.once())
        assert (swept.act, swept.witness) == (Act.REQUEUED, Witness.BOOT)
        assert registry.get(job.job_id).detail == "its host was restarted"

    def test_makes_a_torn_mark_no_riddle(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        job = attempt(registry, us(), us())
        leave_mark(registry, job, a_mark(us())).write_bytes(b"")
        clock.reboot()
        assert only(sweep.once()).witness is Witness.BOOT


class TestDeadProcesses:
    def test_give_the_job_back_before_its_lease_has_expired(
        self, registry: Registry, sweep: Sweep
    ) -> None:
        job = attempt(registry, dead(), dead())
        swept = only(sweep.once())
        assert (swept.act, swept.witness) == (Act.REQUEUED, Witness.PROCESSES)
        assert registry.get(job.job_id).status is Status.PENDING

    @pytest.mark.parametrize(
        ("worker", "supervisor"), [(us, dead), (dead, us)], ids=["worker", "supervisor"]
    )
    def test_one_of_them_alive_means_wait(
        self, registry: Registry, sweep: Sweep, worker: Any, supervisor: Any
    ) -> None:
        attempt(registry, worker(), supervisor())
        assert sweep.once() == []

    def test_without_a_mark_prove_nothing(self, registry: Registry, sweep: Sweep) -> None:
        """A pid means nobody in another PID namespace; only the mark says which it was."""
        attempt(registry, dead(), None)
        assert sweep.once() == []

    def test_of_another_namespace_prove_nothing(self, registry: Registry, sweep: Sweep) -> None:
        job = attempt(registry, dead(), None)
        mark = a_mark(dead())
        leave_mark(registry, job, mark._replace(namespace=mark.namespace + 1))
        assert sweep.once() == []

    def test_a_pid_that_passed_on_is_not_the_worker(self, registry: Registry, sweep: Sweep) -> None:
        reused = ProcessMark(os.getpid(), "1", SystemClock().boot_id())
        attempt(registry, reused, dead())
        assert only(sweep.once()).witness is Witness.PROCESSES


class TestAWorkerWithAnotherLog:
    """Two folders of one host share the records; each keeps histories and marks of its own."""

    @pytest.fixture
    def other(self, tmp_path: Path, place: Path, clock: FakeClock) -> Registry:
        store = close_later(FilesStore(str(place), AuditLog(str(tmp_path / "other-logs"))))
        return Registry(store, clock=clock, node=NODE)

    def test_that_lives_is_found(self, other: Registry, sweep: Sweep, clock: FakeClock) -> None:
        """Its lease has expired: what it runs is ended first, and only then the job is back."""
        with subprocess.Popen(["sleep", "60"]) as agent:
            mark = ProcessMark.of(agent.pid)
            assert mark is not None
            attempt(other, us(), mark)
            clock.pass_time(31)
            swept = only(sweep.once())
            assert swept.act is Act.REQUEUED
            assert "what it ran was ended" in swept.words
            assert agent.wait() == -signal.SIGTERM

    def test_that_had_started_nothing(
        self, other: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        attempt(other, us(), None)
        clock.pass_time(31)
        assert "it had started nothing" in only(sweep.once()).words


class TestWhatCannotBeKnown:
    def stale(self, registry: Registry, sweep: Sweep, clock: FakeClock, job: Job) -> Swept:
        clock.pass_time(31)
        swept = only(sweep.once())
        assert swept.act is Act.STALE
        assert registry.get(job.job_id) == job
        return swept

    def test_is_left_alone_and_said_once(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        job = running(registry, lease=terms(us()))
        leave_mark(registry, job, a_mark(us(), node="elsewhere"))
        swept = self.stale(registry, sweep, clock, job)
        assert "cannot be seen from here" in swept.words
        for _ in range(3):
            clock.pass_time(100)
            assert sweep.once() == []
        assert only(Sweep(registry).once()).act is Act.STALE
        assert len(lines(registry, job, AuditEvent.STALE)) == 1

    def test_a_mark_that_cannot_be_read(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        job = running(registry, lease=terms(us()))
        leave_mark(registry, job, a_mark(us())).write_bytes(b"{")
        assert "cannot be read" in self.stale(registry, sweep, clock, job).words

    def test_a_worker_with_another_log(
        self, tmp_path: Path, place: Path, registry: Registry, clock: FakeClock
    ) -> None:
        """No mark in a log that never heard of the attempt is no sign that nothing was started.

        A record of before leases named the log of their worker.
        """
        job = running(registry, lease=terms(us()))
        assert job.lease is not None
        with registry.changing(job.job_id) as (tx, _):
            job = job.evolve(lease=job.lease._replace(logs=""))
            tx.put(job, None)
        store = close_later(FilesStore(str(place), AuditLog(str(tmp_path / "other-logs"))))
        with Registry(store, clock=clock, node=NODE) as other:
            assert "another log" in self.stale(other, Sweep(other), clock, job).words
        assert registry.get(job.job_id) == job

    def test_a_worker_whose_log_is_not_here(
        self, tmp_path: Path, place: Path, registry: Registry, clock: FakeClock
    ) -> None:
        """As with two containers of one name, which share the records and nothing else."""
        logs = AuditLog(str(tmp_path / "other-logs"))
        store = close_later(FilesStore(str(place), logs))
        with Registry(store, clock=clock, node=NODE) as other:
            job = running(other, lease=terms(us()))
        shutil.rmtree(logs.path)
        assert (
            "which does not exist on this host"
            in self.stale(registry, Sweep(registry), clock, job).words
        )

    def test_another_host_is_judged_by_its_wall_clock(
        self, place: Path, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        """Its boot clock says nothing here, and a job of a healthy host is not called stale."""
        far = FakeClock(boot="another-boot")
        store = close_later(FilesStore(str(place), AuditLog(registry.store.audit.path)))
        with Registry(store, clock=far, node="far") as there:
            job = running(there, lease=LeaseTerms("far:1:1:0", 30))
        clock.pass_time(40)
        assert sweep.once() == []
        clock.pass_time(30)
        assert only(sweep.once()).act is Act.STALE
        assert registry.get(job.job_id) == job


class TestASweepThatSlept:
    """A laptop is closed: when it wakes up, every lease has expired, and nobody is lost."""

    def test_gives_workers_time_to_wake_up(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        job = attempt(registry, us(), us())
        assert sweep.once() == []
        clock.pass_time(3600)
        assert sweep.once() == []
        clock.pass_time(5)
        assert sweep.once() == []
        registry.heartbeat(job.job_id, terms(us()), attempt=1)
        clock.pass_time(20)
        assert sweep.once() == []
        assert registry.get(job.job_id).status is Status.RUNNING

    def test_and_not_more_than_that(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        attempt(registry, us(), dead())
        assert sweep.once() == []
        clock.pass_time(3600)
        assert sweep.once() == []
        clock.pass_time(15)
        assert only(sweep.once()).act is Act.REQUEUED

    def test_so_does_one_that_begins_when_the_machine_wakes_up(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        """It did not sleep itself, and comes before the worker has renewed its lease."""
        job = attempt(registry, us(), us())
        clock.suspend(3600)
        sweep = Sweep(registry)
        assert sweep.once() == []
        registry.heartbeat(job.job_id, terms(us()), attempt=1)
        clock.pass_time(20)
        assert sweep.once() == []

    def test_a_sleep_excuses_no_longer_silence(self, registry: Registry, clock: FakeClock) -> None:
        """The worker was awake for longer than its lease; each sweep is a new one, as in cron."""
        clock.suspend(60)
        attempt(registry, us(), dead())
        clock.pass_time(80)
        assert Sweep(registry).once() == []
        clock.pass_time(20)
        assert only(Sweep(registry).once()).act is Act.REQUEUED

    def test_a_dead_worker_that_had_started_nothing_does_not_wake_up(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        clock.suspend(3600)
        running(registry, lease=terms(dead()))
        clock.pass_time(31)
        assert only(Sweep(registry).once()).act is Act.REQUEUED

    def test_sees_at_once_who_is_dead(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        assert sweep.once() == []
        attempt(registry, dead(), dead())
        clock.pass_time(3600)
        assert only(sweep.once()).witness is Witness.PROCESSES


class TestAnUnsupervisedJob:
    """Decision 14: only its own timeouts end it."""

    def test_is_never_given_back(self, registry: Registry, sweep: Sweep, clock: FakeClock) -> None:
        running(registry, idle_timeout_sec=9999)
        clock.pass_time(3000)
        assert sweep.once() == []
        clock.reboot()
        assert sweep.once() == []

    @pytest.mark.parametrize(
        ("limits", "reason"),
        [
            ({"timeout_sec": 60, "idle_timeout_sec": 600}, Reason.TIMEOUT),
            ({"timeout_sec": 600, "idle_timeout_sec": 60}, Reason.IDLE_TIMEOUT),
        ],
    )
    def test_ends_when_its_time_is_over(
        self, registry: Registry, sweep: Sweep, clock: FakeClock, limits: Any, reason: Reason
    ) -> None:
        """I3, I6, decision 8"""
        job = running(registry, **limits)
        clock.pass_time(60)
        assert sweep.once() == []
        clock.pass_time(1)
        swept = only(sweep.once())
        assert (swept.act, swept.witness) == (Act.ENDED, Witness.CLOCK)
        over = registry.get(job.job_id)
        assert (over.status, over.reason, over.failures) == (Status.ERROR, reason, 1)

    def test_an_event_is_a_sign_of_life(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        job = running(registry, timeout_sec=600, idle_timeout_sec=60)
        for _ in range(4):
            clock.pass_time(50)
            registry.publish(job.job_id, "progress")
            assert sweep.once() == []

    def test_waiting_for_a_person_is_not_idling(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        """Decision 23: the idle clock stops, the wall clock goes on."""
        job = running(registry, timeout_sec=600, idle_timeout_sec=60)
        registry.publish(job.job_id, "permission_required", detail="may I?")
        clock.pass_time(300)
        assert sweep.once() == []
        registry.publish(job.job_id, "progress", detail="thank you")
        clock.pass_time(62)
        assert only(sweep.once()).words == "no event for 60 s (idle timeout)"

    def test_also_when_a_broker_has_taken_the_question(
        self, registry: Registry, sweep: Sweep, clock: FakeClock
    ) -> None:
        """Then it is in the audit log, not in the outbox."""
        job = running(registry, timeout_sec=600, idle_timeout_sec=60)
        registry.publish(job.job_id, "permission_required")
        (post,) = registry.store.outbox.posts(1)
        line = registry.note(AuditEvent.PUBLISHED, payload=json.loads(post.payload))
        registry.store.audit.append(job.job_id, line.to_dict(job.job_id))
        registry.store.outbox.done([post])
        clock.pass_time(300)
        assert sweep.once() == []
        clock.pass_time(301)
        assert registry.get(job.job_id).status is Status.RUNNING
        assert only(sweep.once()).words == "it has not ended in 600 s"

    def test_of_another_tool_counts_from_when_it_was_first_seen(
        self, registry: Registry, sweep: Sweep, clock: FakeClock, place: Path
    ) -> None:
        """A record of exactly the fifteen keys does not say when it was claimed."""
        job = running(registry, timeout_sec=60, idle_timeout_sec=600)
        path = place / f"{job.job_id}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "started_at": None}))
        clock.pass_time(100)
        assert sweep.once() == []
        clock.pass_time(60)
        assert only(sweep.once()).act is Act.ENDED

    def test_a_word_in_that_moment_saves_it(self, registry: Registry, clock: FakeClock) -> None:
        job = running(registry, timeout_sec=600, idle_timeout_sec=60)
        clock.pass_time(62)

        class Late(Registry):
            def finish(self, *args: Any, **given: Any) -> Job:
                registry.publish(job.job_id, "progress")
                return super().finish(*args, **given)

        assert Sweep(Late(registry.store, clock=clock, node=NODE)).once() == []
        assert registry.get(job.job_id).status is Status.RUNNING


class TestManySweeps:
    def test_do_what_one_does(self, registry: Registry, clock: FakeClock) -> None:
        jobs = [attempt(registry, us(), dead()) for _ in range(5)]
        clock.pass_time(31)
        acts = [one.act for _ in range(3) for one in Sweep(registry).once()]
        assert acts == [Act.REQUEUED] * 5
        assert all(registry.get(job.job_id).losses == 1 for job in jobs)

    def test_a_broken_record_costs_the_others_nothing(
        self, registry: Registry, sweep: Sweep, clock: FakeClock, place: Path
    ) -> None:
        one, two = attempt(registry, us(), dead()), attempt(registry, us(), dead())
        (place / f"{one.job_id}.json").write_bytes(b"{")
        clock.pass_time(31)
        assert only(sweep.once()).job_id == two.job_id

    def test_a_registry_that_cannot_be_written_ends_nobody(
        self, registry: Registry, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its workers cannot renew their leases either: what they run is worth more."""
        process = subprocess.Popen(["sleep", "60"])
        try:
            supervisor = ProcessMark.of(process.pid)
            assert supervisor is not None
            attempt(registry, us(), supervisor)
            clock.pass_time(31)

            def full(*_: Any, **__: Any) -> Any:
                raise StoreError("the disk is full")

            monkeypatch.setattr(registry, "changing", full)
            with pytest.raises(StoreError):
                Sweep(registry, grace_sec=0.1).once()
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()

    def test_one_that_is_to_end_does_not_stay_until_others_have_ended(
        self, registry: Registry, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A person who leaves `mam watch` does not wait for the grace of somebody's agent."""
        leaving, is_over = threading.Event(), threading.Event()

        def ends_slowly(*_: Any) -> None:
            leaving.set()
            is_over.wait(60)

        monkeypatch.setattr("mam_core.work.sweep.end_leftovers", ends_slowly)
        job = attempt(registry, us(), us())
        clock.pass_time(31)
        try:
            swept = Sweep(registry, grace_sec=3600.0, is_stopped=leaving.is_set).once()
        finally:
            is_over.set()
        assert only(swept).act is Act.ENDING
        assert registry.get(job.job_id).status is Status.RUNNING

    def test_reads_no_record_that_does_not_run(
        self, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A pass costs what runs, not what there is."""
        store = close_later(
            FilesStore(str(tmp_path / "j"), AuditLog(str(tmp_path / "l")), catalogue=Index())
        )
        with Registry(store, clock=clock, node=NODE) as registry:
            for number in range(50):
                add(registry, f"job {number}", agent_session="others")
            job = attempt(registry, us(), dead())
            read: list[str] = []
            get = store.get

            def reading(job_id: str) -> Job:
                read.append(job_id)
                return get(job_id)

            monkeypatch.setattr(store, "get", reading)
            Sweep(registry).once()
            assert read == [job.job_id]
