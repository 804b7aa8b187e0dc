"""Cancelled, stopped, killed: whatever ends a job from outside, nothing of it stays alive."""

from __future__ import annotations

import io
import os
import signal
import time
from contextlib import suppress

import psutil
import pytest

from mam_core.agents.profiles import profile_of
from mam_core.leases import LeaseTerms
from mam_core.records import Reason, Status
from mam_core.stores.base import Query
from mam_core.work.attempt import Attempt
from mam_core.work.hold import Terms
from mam_core.work.screen import Screen
from tests.support.patience import eventually
from tests.support.stopping import stop
from tests.support.working import LABEL, Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")


class TestCancelled:
    def test_a_running_job_is_cancelled_by_whom_it_says(
        self, shop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """O14: cancelled in the registry, in history and at the broker; nothing is alive."""
        job_id = shop.add(shop.agent("stuck", "hangs"))
        with shop.at_work():
            shop.until_said(job_id, "hangs")
            shop.registry.actor = "bea"
            shop.registry.request_cancel(job_id, why="wrong branch")
            job = shop.until_status(job_id, Status.CANCELLED)
            assert not shop.survivors()
        assert (job.reason, job.detail) == (Reason.CANCELLED, "cancelled by bea: wrong branch")
        assert job.failures == 0
        asked = shop.audit(job_id, "cancel_requested")[0]
        assert (asked["by"], asked["why"]) == ("bea", "wrong branch")
        assert shop.names(job_id)[-1] == "cancelled"

    def test_ten_agents_that_do_not_want_to_end_are_ended_at_once(self, shop: Workshop) -> None:
        """Issue: five processes each, out of reach each in its own way."""
        hostile = shop.agent("hostile", "hostile")
        ids = [shop.add(hostile) for _ in range(10)]
        with shop.at_work(slots=10):
            for job_id in ids:
                shop.until_said(job_id, "ready")
            assert len(shop.survivors()) == 50
            for job_id in ids:
                shop.registry.request_cancel(job_id)
            for job_id in ids:
                shop.until_status(job_id, Status.CANCELLED)
            assert not shop.survivors()
        assert all(shop.audit(one, "attempt_ended")[0]["killed"] >= 1 for one in ids)

    @pytest.mark.release
    def test_a_hundred_cancels_leave_nobody(self, shop: Workshop) -> None:
        hostile = shop.agent("hostile", "hostile")
        with shop.at_work(slots=4):
            for _ in range(25):
                ids = [shop.add(hostile) for _ in range(4)]
                for job_id in ids:
                    shop.until_said(job_id, "ready")
                for job_id in ids:
                    shop.registry.request_cancel(job_id)
                for job_id in ids:
                    shop.until_status(job_id, Status.CANCELLED)
                assert not shop.survivors()

    def test_a_job_is_cancelled_in_the_middle_of_its_checks(self, shop: Workshop) -> None:
        job_id = shop.add(shop.agent("good", "behaves"), validate="touch checking; sleep 300")
        with shop.at_work():
            eventually((shop.workdir / "checking").exists, "the check runs")
            shop.registry.request_cancel(job_id)
            shop.until_status(job_id, Status.CANCELLED)

    def test_a_job_that_somebody_took_away_is_let_go(self, shop: Workshop) -> None:
        """Decision 15: a person's override counts; the attempt ends and says nothing more."""
        job_id = shop.add(shop.agent("stuck", "hangs"))
        with shop.at_work():
            shop.until_said(job_id, "hangs")
            shop.registry.set_status(job_id, Status.COMPLETED)
            shop.until_nobody_lives()
        job = shop.job(job_id)
        assert (job.status, job.attempt) == (Status.COMPLETED, 1)


class TestStopped:
    def test_sigterm_hands_the_job_back_and_blames_nobody(self, shop: Workshop) -> None:
        """Issue: finishes or hands back cleanly."""
        job_id = shop.add(shop.agent("hostile", "hostile"))
        with shop.mam_work() as worker:
            shop.until_said(job_id, "ready")
            worker.send(signal.SIGTERM)
            assert worker.code() == 0
        assert not shop.survivors()
        job = shop.job(job_id)
        assert (job.status, job.reason, job.failures) == (Status.PENDING, Reason.STOPPED, 0)
        assert (job.losses, job.lease, job.not_before) == (0, None, None)
        assert shop.names(job_id)[-1] == "queued"

    def test_an_interrupt_lets_the_job_finish_and_a_second_hands_it_back(
        self, shop: Workshop
    ) -> None:
        line = "echo here; while [ ! -e go ]; do sleep 0.02; done"
        waits = shop.agent("waits", "/bin/sh", "-c", line)
        first, second = shop.add(waits), shop.add(waits)
        with shop.mam_work() as worker:
            shop.until_said(first, "here")
            worker.send(signal.SIGINT)
            worker.until(lambda: worker.says("^C again"), "it says how to go on")
            (shop.workdir / "go").touch()
            assert worker.code() == 0
        assert shop.job(first).status is Status.COMPLETED
        assert shop.job(second).attempt == 0
        (shop.workdir / "go").unlink()
        with shop.mam_work() as worker:
            shop.until_said(second, "here")
            worker.send(signal.SIGINT)
            worker.until(lambda: worker.says("^C again"), "it says how to go on")
            worker.send(signal.SIGINT)
            assert worker.code() == 0
        assert shop.job(second).reason is Reason.STOPPED

    def test_a_check_is_finished_before_the_worker_ends(self, shop: Workshop) -> None:
        """What the agent did would be done again for nothing."""
        line = "touch checking; while [ ! -e go ]; do sleep 0.02; done"
        job_id = shop.add(shop.agent("good", "behaves"), validate=line)
        with shop.mam_work() as worker:
            eventually((shop.workdir / "checking").exists, "the check runs")
            worker.send(signal.SIGTERM)
            time.sleep(0.3)
            (shop.workdir / "go").touch()
            assert worker.code() == 0
        assert shop.job(job_id).status is Status.COMPLETED


class TestKilled:
    def test_a_worker_that_is_killed_leaves_nothing_alive_and_its_job_comes_back(
        self, shop: Workshop
    ) -> None:
        """Issue: kill -9; the next worker finds the job."""
        shop.set(sweep_sec=0.2)  # its processes tell, long before the lease is over
        job_id = shop.add(shop.agent("hostile", "hostile"))
        with shop.mam_work() as worker:
            shop.until_said(job_id, "ready")
            worker.send(signal.SIGKILL)
            worker.code()
        shop.until_nobody_lives()
        with shop.mam_work() as second:
            shop.until_said(job_id, "ready", attempt=2)
            second.send(signal.SIGTERM)
            assert second.code() == 0
        job = shop.job(job_id)
        assert (job.attempt, job.failures, job.reason) == (2, 0, Reason.STOPPED)
        lost = [line for line in shop.audit(job_id, "status_changed") if line["to"] == "pending"]
        assert lost[0]["reason"] == "lost"

    def test_a_worker_that_is_killed_in_a_check_leaves_nothing_of_it(self, shop: Workshop) -> None:
        shop.set(lease_sec=2.0, heartbeat_sec=0.5, sweep_sec=0.2)
        line = f"touch checking; sleep 300; : {shop.word}"
        job_id = shop.add(shop.agent("good", "behaves"), validate=line)
        with shop.mam_work() as worker:
            eventually((shop.workdir / "checking").exists, "the check runs")
            eventually(lambda: bool(shop.survivors()), "its command runs")
            worker.send(signal.SIGKILL)
            worker.code()
        shop.until_nobody_lives()
        assert shop.job(job_id).status is Status.RUNNING

    def test_a_supervisor_that_is_killed_costs_the_attempt_and_leaves_nobody(
        self, shop: Workshop
    ) -> None:
        """The second net: whoever carries the attempt's token."""
        job_id = shop.add(shop.agent("hostile", "hostile"))
        with shop.at_work() as stops:
            shop.until_said(job_id, "ready")
            stops.finish()
            for supervisor in shop.supervisors():
                with suppress(psutil.NoSuchProcess):  # they end with each other
                    supervisor.kill()
            job = shop.until_status(job_id, Status.PENDING)
            assert not shop.survivors()
        assert (job.reason, job.failures, job.losses) == (Reason.LOST, 0, 1)

    def test_a_worker_that_slept_through_its_lease_does_not_end_the_newer_attempt(
        self, shop: Workshop
    ) -> None:
        """Issue: SIGSTOP, the lease passes, another takes over, SIGCONT."""
        shop.set(lease_sec=4.0, heartbeat_sec=0.5, sweep_sec=0.2)
        job_id = shop.add(shop.agent("hostile", "hostile"))
        with shop.mam_work() as sleeper:
            shop.until_said(job_id, "ready")
            stop(sleeper.process.pid, shop.path)
            shop.set(lease_sec=30.0)  # the next one's is not to run out as well
            with shop.mam_work() as second:
                shop.until_said(job_id, "ready", attempt=2)
                assert len(shop.survivors()) == 5  # nothing of the first attempt
                sleeper.send(signal.SIGCONT)
                sleeper.send(signal.SIGTERM)
                assert sleeper.code() == 0
                job = shop.job(job_id)
                assert (job.status, job.attempt) == (Status.RUNNING, 2)
                assert len(shop.survivors()) == 5
                second.send(signal.SIGTERM)
                assert second.code() == 0
        found = shop.registry.store.find(Query())[0]
        assert [summary.status for summary in found] == [Status.PENDING]

    def test_a_worker_that_slept_between_claim_and_start_starts_nothing(
        self, shop: Workshop
    ) -> None:
        """A sweep may have given the job up as one that had started nothing."""
        shop.add(shop.agent("good", "/bin/sh", "-c", "touch started"))
        lease = LeaseTerms("sleeper", 0.2)
        job = shop.registry.claim(LABEL, lease=lease)
        assert job is not None
        time.sleep(0.3)
        shop.registry.requeue(job.job_id, Reason.LOST, attempt=None, told={})
        profile = profile_of(shop.config, "good")
        terms = Terms("sleeper", str(shop.path), lease_sec=lease.ttl_sec)
        screen = Screen(io.StringIO())
        assert Attempt(shop.registry, job, profile, terms, screen, lambda: False).run() is None
        screen.close()
        assert not (shop.workdir / "started").exists()
        assert shop.job(job.job_id).status is Status.PENDING
        assert shop.audit(job.job_id, "refused")
