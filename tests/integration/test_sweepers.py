"""Whoever lives long sweeps: a lost job comes back though no worker is left to see to it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.records import Job, Reason, Status
from mam_core.stores.base import Query
from mam_core.summaries import Summary
from mam_core.work.submissions import FOLDER, cancel_abandoned, new_label, serving
from tests.support.patience import PATIENCE_SEC, eventually
from tests.support.watching import MAM
from tests.support.working import LABEL, Workshop, workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    with workshop(tmp_path) as made:
        made.set(sweep_sec=0.2)
        yield made
        made.until_nobody_lives()


def lost(shop: Workshop, count: int = 1) -> list[str]:
    """Jobs whose worker was killed, and nobody has noticed."""
    hangs = shop.agent("stuck", "hangs")
    ids = [shop.add(hangs) for _ in range(count)]
    shop.set(sweep_sec=1000.0)
    with shop.mam_work("--slots", str(count)) as worker:
        for job_id in ids:
            shop.until_said(job_id, "hangs")
        worker.send(signal.SIGKILL)
        worker.process.wait()
    shop.set(sweep_sec=0.2)
    assert all(shop.job(job_id).status is Status.RUNNING for job_id in ids)
    return ids


def returned(shop: Workshop, job_id: str) -> Job:
    job = shop.until_status(job_id, Status.PENDING)
    assert (job.reason, job.failures, job.losses) == (Reason.LOST, 0, 1)
    assert not shop.survivors()
    return job


class TestWhoSweeps:
    @pytest.mark.parametrize("command", [["watch", "--all"], ["watch", "JOB"], ["relay"]])
    def test_a_lost_job_comes_back_with_only_one_alive_who_looks_on(
        self, shop: Workshop, command: list[str]
    ) -> None:
        """Issue 5, 7: any long-lived process does it."""
        [job_id] = lost(shop)
        words = [job_id if word == "JOB" else word for word in command]
        with shop.mam(*words) as alive:
            returned(shop, job_id)
            alive.send(signal.SIGINT)
            alive.code()

    def test_who_waits_for_a_lost_job_does_not_wait_for_ever(self, shop: Workshop) -> None:
        """A wish to cancel it was told to a worker that is dead."""
        [job_id] = lost(shop)
        shop.registry.request_cancel(job_id)
        with shop.mam("wait", job_id) as waiting:
            assert waiting.code() == 1
        assert waiting.out == [f"{job_id} cancelled"]

    def test_many_who_look_on_give_each_job_back_once(self, shop: Workshop) -> None:
        ids = lost(shop, 3)
        with shop.mam("watch", "--all"), shop.mam("watch", "--all"), shop.mam("wait", *ids):
            for job_id in ids:
                returned(shop, job_id)
        for job_id in ids:
            changes = [line["cause"] for line in shop.audit(job_id, "status_changed")]
            assert changes == ["claim", "requeue"]
            assert not shop.audit(job_id, "refused")

    def test_the_one_that_a_publisher_leaves_behind_does_not(self, shop: Workshop) -> None:
        """It ends when the outbox is empty, and has nothing to do with jobs."""
        from mam_core.operations import left_relay

        assert "sweeping" not in vars(left_relay)


class TestSubmissions:
    """A job that its submitter runs itself has a label that nobody else serves."""

    def jobs(self, shop: Workshop) -> list[Summary]:
        return shop.registry.store.find(Query())[0]

    def left(self, shop: Workshop) -> list[str]:
        return sorted(os.listdir(shop.path / FOLDER))

    def test_one_that_was_killed_while_its_job_ran_leaves_nothing_that_waits_for_ever(
        self, shop: Workshop
    ) -> None:
        shop.agent("hostile", "hostile")
        with shop.mam("submit", "--agent", "hostile", "--prompt", "x") as submitted:
            submitted.until(lambda: len(shop.survivors()) == 5, "the agent runs")
            submitted.send(signal.SIGKILL)
            submitted.process.wait()
        [job] = self.jobs(shop)
        assert job.status is Status.RUNNING
        with shop.mam("watch", "--all"):
            ended = shop.until_status(job.job_id, Status.CANCELLED)
            eventually(lambda: not self.left(shop), "nothing of it is left")
        assert (ended.reason, ended.losses) == (Reason.CANCELLED, 1)
        assert ended.detail == "its submission has ended, and nobody else serves its label"

    def test_one_that_was_killed_before_its_job_ran(self, shop: Workshop) -> None:
        """Its job is paused, and pending; nobody else took it meanwhile."""
        shop.agent("stuck", "hangs")
        with shop.mam("pause", "--all") as paused:
            assert paused.code() == 0
        words = ["--agent", "stuck", "--prompt", "x"]
        with shop.mam("watch", "--all"), shop.mam("submit", *words) as submitted:
            submitted.until(lambda: bool(self.jobs(shop)), "its job is there")
            [job] = self.jobs(shop)
            assert cancel_abandoned(shop.registry, str(shop.path)) == []
            assert shop.job(job.job_id).status is Status.PENDING
            submitted.send(signal.SIGKILL)
            submitted.process.wait()
            shop.until_status(job.job_id, Status.CANCELLED)
            eventually(lambda: not self.left(shop), "nothing of it is left")

    def test_one_whose_reader_has_gone_does_not_leave_its_job_behind(self, shop: Workshop) -> None:
        """``mam submit … | head -1``"""
        line = "while :; do echo on and on; sleep 0.05; done"
        shop.agent("talker", "/bin/sh", "-c", line, shop.word)
        shop.settle()
        command = [*MAM, "submit", "--agent", "talker", "--prompt", "x"]
        with subprocess.Popen(
            command, cwd=shop.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as submitted:
            assert submitted.stdout is not None
            assert b" started " in submitted.stdout.readline()
            submitted.stdout.close()
            submitted.wait(PATIENCE_SEC)
        [job] = self.jobs(shop)
        assert job.status is Status.CANCELLED
        assert self.left(shop) == []

    def test_a_person_may_take_such_a_job_up_again(self, shop: Workshop) -> None:
        """Once it was cancelled, nobody cancels it a second time."""
        good = shop.agent("good", "behaves")
        label = new_label()
        with serving(shop.registry, str(shop.path), label):
            job_id = shop.add(good, agent_session=label)
        assert shop.job(job_id).status is Status.CANCELLED
        shop.registry.retry(job_id)
        assert cancel_abandoned(shop.registry, str(shop.path)) == []
        shop.drain(label=label)
        assert shop.job(job_id).status is Status.COMPLETED

    def test_a_label_that_only_looks_like_one_is_nobodys_business(self, shop: Workshop) -> None:
        job_id = shop.add(shop.agent("good", "behaves"), agent_session="submit:00000000")
        other = shop.add("good", agent_session=LABEL)
        assert cancel_abandoned(shop.registry, str(shop.path)) == []
        assert {shop.job(one).status for one in (job_id, other)} == {Status.PENDING}
