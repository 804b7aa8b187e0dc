"""Whatever is broken around a worker, its jobs go on: broker, disk, log, terminal, registry."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from typing import Any

import pytest

from mam_core.errors import StoreError
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry
from mam_core.wiring import registry_lock
from tests.faults.small_disk import CannotMount, small_disk
from tests.support.brokers import kill_server
from tests.support.patience import PATIENCE_SEC, eventually
from tests.support.relays import none_left_behind
from tests.support.watching import MAM
from tests.support.working import LABEL, Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")


class TestBroker:
    def test_a_broker_that_dies_is_no_concern_of_the_job(self, shop: Workshop) -> None:
        """G25: and its events come to the broker that is started anew, in order."""
        line = "echo here; while [ ! -e go ]; do sleep 0.02; done"
        job_id = shop.add(shop.agent("waits", "/bin/sh", "-c", line))
        with shop.mam_work("--drain") as worker:
            shop.until_said(job_id, "here")
            eventually(lambda: bool(shop.audit(job_id, "published")), "an event was sent")
            kill_server(shop.path)
            (shop.workdir / "go").touch()
            assert worker.code() == 0
        assert shop.job(job_id).status is Status.COMPLETED
        told = [content["seq"] for content in shop.told(job_id)]
        assert told == list(range(1, shop.job(job_id).last_seq + 1))

    def test_without_any_broker_events_wait_and_jobs_do_not(self, shop: Workshop) -> None:
        job_id = shop.add(shop.agent("good", "behaves"), broker={"host": "127.0.0.1", "port": 1})
        with none_left_behind(shop.path), shop.mam_work("--drain") as worker:
            assert worker.code() == 0
        assert shop.job(job_id).status is Status.COMPLETED
        assert not shop.audit(job_id, "published")
        assert shop.names(job_id)[-1] == "completed"


class TestDisk:
    def test_a_log_that_cannot_be_made_gives_the_job_back(
        self, shop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without a mark of its processes no sweep could know what is left of it."""
        place = shop.folder / "logs"
        place.write_text("a file is in the way")
        job_id = shop.add(shop.agent("good", "behaves"), max_attempts=1)
        monkeypatch.setenv("DELEGATE_JOB_LOGS_DIR", str(place))
        assert shop.drain().ran == 1
        job = shop.job(job_id)
        assert (job.status, job.reason, job.failures) == (Status.PENDING, Reason.OTHER, 0)
        assert "could not run it" in (job.detail or "")
        assert job.not_before is not None  # no storm

    def test_a_full_disk_costs_output_and_not_the_job(
        self, shop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Issue: a full log never stops it."""
        line = f"head -c 3000000 /dev/zero; echo; touch {shop.workdir}/out.txt; echo x > out.txt"
        flood = shop.agent("flood", "/bin/sh", "-c", line)
        try:
            with small_disk("size=1m") as disk:
                monkeypatch.setenv("DELEGATE_JOB_LOGS_DIR", str(disk / "logs"))
                job_id = shop.add(flood, expected_artifacts=["out.txt"])
                shop.drain()
                assert shop.job(job_id).status is Status.COMPLETED
        except CannotMount as problem:
            pytest.skip(str(problem))

    @pytest.mark.release
    def test_a_registry_that_is_locked_for_a_while_gets_the_result_later(
        self, shop: Workshop
    ) -> None:
        line = "echo here; while [ ! -e go ]; do sleep 0.02; done"
        job_id = shop.add(shop.agent("waits", "/bin/sh", "-c", line))
        with shop.at_work():
            shop.until_said(job_id, "here")
            with registry_lock(str(shop.path)):
                (shop.workdir / "go").touch()
                time.sleep(6.5)  # longer than anybody waits for the lock
            shop.until_status(job_id, Status.COMPLETED)
        assert shop.job(job_id).attempt == 1


class TestTerminal:
    def test_a_terminal_that_is_gone_stops_nobody(self, shop: Workshop) -> None:
        """Issue: a closed console never stops it."""
        good = shop.agent("good", "behaves")
        ids = [shop.add(good) for _ in range(3)]
        reading, writing = os.pipe()
        process = _worker(shop, writing)
        os.close(reading)
        assert process.wait(PATIENCE_SEC) == 0
        assert {shop.job(one).status for one in ids} == {Status.COMPLETED}

    def test_a_pipe_that_nobody_reads_stops_nobody(self, shop: Workshop) -> None:
        """^S, a reader that sleeps: the worker must not wait for it, or its leases run out."""
        talks = shop.agent("talks", "prints_much", 300_000)
        ids = [shop.add(talks) for _ in range(2)]
        reading, writing = os.pipe()
        try:
            process = _worker(shop, writing)
            assert process.wait(PATIENCE_SEC) == 0
        finally:
            os.close(reading)
        assert {shop.job(one).status for one in ids} == {Status.COMPLETED}

    def test_a_stopped_terminal_neither(self, shop: Workshop) -> None:
        job_id = shop.add(shop.agent("talks", "prints_much", 300_000))
        ours, its = pty.openpty()
        try:
            process = _worker(shop, its)
            assert process.wait(PATIENCE_SEC) == 0
        finally:
            os.close(ours)
        assert shop.job(job_id).status is Status.COMPLETED

    def test_what_hostile_agents_print_cannot_command_the_terminal(self, shop: Workshop) -> None:
        line = r"printf '\033]0;owned\007\033[2J\033[201~\r\nplain\033[31m red\n'"
        job_id = shop.add(shop.agent("rude", "/bin/sh", "-c", line))
        with shop.mam_work("--drain") as worker:
            assert worker.code() == 0
        assert shop.job(job_id).status is Status.COMPLETED
        assert not any("\x1b" in line or "\x07" in line for line in worker.out)
        assert any("plain" in line for line in worker.out)


class TestAnswers:
    def test_a_claim_whose_answer_was_lost_is_taken_up(
        self, shop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The database has made it and the link broke: nobody waits for its lease to end."""
        first, second = (shop.add(shop.agent("good", "behaves")) for _ in range(2))
        real = Registry.claim
        lost: list[str] = []

        def claim(registry: Registry, *words: Any, **given: Any) -> Job | None:
            job = real(registry, *words, **given)
            if job is not None and not lost:
                lost.append(job.job_id)
                raise StoreError("it was lost: whether the last change was made is not known")
            return job

        monkeypatch.setattr(Registry, "claim", claim)
        assert shop.drain().ran == 2
        assert lost == [first]
        for job_id in (first, second):
            job = shop.job(job_id)
            assert (job.status, job.attempt) == (Status.COMPLETED, 1)


def _worker(shop: Workshop, terminal: int) -> subprocess.Popen[bytes]:
    """``mam work`` on a terminal or a pipe of the test's, whose end of it is closed here."""
    shop.settle()
    process = subprocess.Popen(
        [*MAM, "work", "--label", LABEL, "--drain"],
        cwd=shop.folder,
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=subprocess.DEVNULL,
    )
    os.close(terminal)
    return process
