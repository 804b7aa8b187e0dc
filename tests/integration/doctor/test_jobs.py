"""Jobs on record against real workers and real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mam_core.disk import Folder
from mam_core.leases import LeaseTerms
from mam_core.operations.doctor import Area, Severity
from mam_core.process_mark import ProcessMark
from mam_core.records import Job, Status
from mam_core.work.marks import AttemptMark
from mam_core.work.orders import Isolation, new_token
from mam_core.work.reports import Started
from tests.support.clinic import Clinic
from tests.support.live import live_shop
from tests.support.patience import eventually
from tests.support.supervision import Stage, Stranger, stage
from tests.support.working import LABEL


@contextmanager
def lost_jobs(shop: Clinic, count: int = 1) -> Iterator[list[str]]:
    """Their worker was killed, and nobody sweeps; what they ran has gone with it."""
    stuck = shop.agent("stuck", "hangs")
    ids = [shop.add(stuck, prompt=f"job {number}") for number in range(count)]
    with shop.mam_work("--slots", str(count)) as worker:
        for job_id in ids:
            shop.until_said(job_id, "hangs")
        worker.send(signal.SIGKILL)
        worker.process.wait()
        shop.until_nobody_lives()
        eventually(lambda: not shop.supervisors(), "their supervisors are gone")
        yield ids


class TestWorkerIsGone:
    """Issue 6: a job that is running, and whose worker is gone."""

    def test_it_is_swept_and_no_other(self, shop: Clinic) -> None:
        with lost_jobs(shop, 2) as (first, second):
            wrong = [one for one in shop.findings() if one.area is Area.JOBS]
            assert sorted(one.what for one in wrong) == sorted(
                [f"job {first} attempt 1", f"job {second} attempt 1"]
            )
            for one in wrong:
                assert one.severity is Severity.PROBLEM
                assert "nothing of it is left" in one.words
            finding = next(one for one in wrong if first in one.what)
            assert "is requeued" in shop.mended(finding)
            assert shop.job(first).status is Status.PENDING
            assert shop.job(second).status is Status.RUNNING
            assert shop.told(first)[-1]["data"]["witness"] == "processes"
            assert shop.say("doctor", "--fix", "--yes").code == 0
            assert shop.job(second).status is Status.PENDING
            shop.only(LABEL)  # nothing else: their prompt files went with them

    def test_one_whose_processes_live_is_not_given_to_another(self, shop: Clinic) -> None:
        """Its worker is dead by pid; what it ran is not gone, and the sweep waits for that."""
        job, _ = held_job(shop, pid=dead_process().pid)
        with stranger_of(shop, job) as stranger:
            finding = shop.only(f"job {job.job_id} attempt 1")
            assert "some of its processes are still there" in finding.words
            done = shop.mend(finding)
            assert not done.is_done
            assert "not known to be gone" in done.words
            assert shop.job(job.job_id).status is Status.RUNNING
            assert stranger.is_untouched

    def test_one_that_nobody_supervises_has_its_own_time(self, shop: Clinic) -> None:
        job_id = shop.add(shop.agent("good", "behaves"))
        assert shop.ok("pick", "--agent-session", LABEL).out == f"{job_id}\n"
        assert shop.findings() == []
        record = shop.path / f"{job_id}.json"
        old = json.loads(record.read_text()) | {"started_at": "2020-01-01T00:00:00Z"}
        record.write_text(json.dumps(old))
        finding = shop.only(f"job {job_id} attempt 1")
        assert "nobody supervises it" in finding.words
        shop.mended(finding)
        assert shop.job(job_id).status is Status.ERROR
        assert shop.findings() == []


class TestSupervisorIsGone:
    def test_while_its_worker_lives(self, shop: Clinic) -> None:
        """Issue 6: the mark of a running job names a supervisor that is gone."""
        job, _ = held_job(shop, pid=os.getpid())
        assert shop.findings() == [], "a job that has started nothing"
        with stranger_of(shop, job):
            finding = shop.only(f"job {job.job_id} attempt 1")
            assert "its supervisor is gone, and some of what it ran is not" in finding.words
            assert finding.fix is None, "its worker is the one who ends it"
        assert shop.findings() == []


class TestLeftProcesses:
    """Issue 6: processes with the token of an attempt that nobody runs."""

    def test_are_ended_by_their_token(self, shop: Clinic, ground: Stage) -> None:
        job_id = shop.add(shop.agent("good", "behaves"))
        run = ground.hostile(Isolation.OFF)
        self.remember(shop, job_id, run.the_mark)
        os.kill(run.the_mark.supervisor.pid, signal.SIGKILL)
        stranger = Stranger(shop.folder, {"MAM_ATTEMPT_TOKEN": new_token()})
        try:
            finding = shop.until_found(f"job {job_id} attempt 1")
            left = len(ground.survivors())
            assert left > 1
            assert f"{left} processes of it are left" in finding.words
            assert "the job is error" in finding.words
            assert "processes of job" in shop.mended(finding)
            assert not ground.survivors()
            assert stranger.is_untouched
            assert "the doctor ends" in shop.audit(job_id, "stale")[-1]["why"]
            assert shop.findings() == []
        finally:
            stranger.end()

    def test_also_those_that_took_their_variables_off(self, shop: Clinic, ground: Stage) -> None:
        job_id = shop.add(shop.agent("good", "behaves"))
        run = ground.run("scrubs", isolation=Isolation.OFF)
        run.until_said("ready")
        self.remember(shop, job_id, run.the_mark)
        os.kill(run.the_mark.supervisor.pid, signal.SIGKILL)
        eventually(lambda: len(ground.survivors()) == 1, "the daemon is left")
        shop.mended(shop.until_found(f"job {job_id} attempt 1"))
        assert not ground.survivors()
        assert shop.findings() == []

    def test_a_supervisor_that_was_stopped_counts_too(self, shop: Clinic, ground: Stage) -> None:
        job_id = shop.add(shop.agent("good", "behaves"))
        orders = ground.orders("hangs", label=f"job {job_id} attempt 1")
        run = ground.start(orders)
        run.until_told(Started)
        self.remember(shop, job_id, run.the_mark)
        os.kill(run.the_mark.supervisor.pid, signal.SIGSTOP)
        shop.mended(shop.until_found(f"job {job_id} attempt 1"))
        assert not ground.survivors()
        assert shop.findings() == []

    def test_a_live_agent_between_two_jobs_is_none(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        with live_shop(tmp_path_factory.mktemp("live")) as live:
            live.stand_in()
            job_id = live.order("say hello")
            live.open()
            assert live.ended(job_id).status is Status.COMPLETED
            mark = json.loads((live.attempt_folder(job_id) / "process.json").read_text())
            assert ProcessMark.from_dict(mark["supervisor"]).is_alive
            done = subprocess.run(
                [sys.executable, "-m", "mam_core.cli.main", "doctor", "--fix", "--yes", "--json"],
                cwd=live.folder,
                capture_output=True,
                text=True,
                check=True,
            )
            told = json.loads(done.stdout)["findings"]
            assert [one["words"] for one in told if one["area"] == "processes"] == [
                "nothing is wrong"
            ]
            assert ProcessMark.from_dict(mark["supervisor"]).is_alive

    def remember(self, shop: Clinic, job_id: str, mark: AttemptMark) -> None:
        """As a worker that was killed after a person had ended its job by hand."""
        job = shop.registry.claim(LABEL)
        assert job is not None
        write_mark(shop, job, mark)
        shop.registry.set_status(job_id, Status.ERROR)


class TestNobodyServes:
    def test_the_line_that_would_serve_it_is_said(self, shop: Clinic) -> None:
        agent = shop.agent("good", "behaves")
        shop.add(agent, agent_session=f"tmux:{LABEL}")
        shop.add(agent, "another", agent_session=f"tmux:{LABEL}")
        finding = shop.only(f"tmux:{LABEL}")
        assert finding.severity is Severity.NOTE
        assert finding.words.startswith("2 jobs of agent good wait")
        assert finding.words.endswith(f"mam spawn --agent-session tmux:{LABEL} --agent good")
        assert shop.say("doctor").code == 0
        shop.spawn(LABEL, agent)
        shop.until_well()

    def test_a_worker_outside_of_tmux_is_enough(self, shop: Clinic) -> None:
        shop.agent("good", "behaves")
        stuck = shop.agent("stuck", "hangs")
        job_id = shop.add(stuck)
        shop.add(stuck, "waits")
        with shop.mam_work("--agents", "stuck") as worker:
            shop.until_said(job_id, "hangs")
            assert shop.findings() == []
            worker.send(signal.SIGTERM)
            worker.code()

    def test_a_worker_whose_registry_cannot_be_told_serves_nobody_here(
        self, shop: Clinic, tmp_path: Path
    ) -> None:
        agent = shop.agent("good", "behaves")
        shop.add(agent)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        words = ("mam", "work", "--agent-session", LABEL, "--registry-dir", "not/there")
        with subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(60)", *words], cwd=elsewhere
        ) as worker:
            try:
                finding = shop.only(LABEL)
                assert "nobody serves" in finding.words
            finally:
                worker.kill()

    def test_jobs_that_are_blocked_as_well_are_counted_apart(self, shop: Clinic) -> None:
        """As the inbox counts: a blocked job does not wait for a session alone."""
        agent = shop.agent("good", "behaves")
        words = f"of agent {agent}"
        first = shop.add(agent, not_before="+1h")
        assert shop.only(LABEL).words.startswith(f"1 job {words} is blocked, and nobody serves")
        shop.add(agent)
        one = f"1 job {words} waits, 1 more is blocked, and nobody serves"
        assert shop.only(LABEL).words.startswith(one)
        shop.add(agent, after=[first])
        shop.add(agent)
        assert shop.only(LABEL).words.startswith(f"2 jobs {words} wait, 2 more are blocked, and")

    def test_a_hostile_label_is_one_word_and_harmless(self, shop: Clinic) -> None:
        shop.add(shop.agent("good", "behaves"), agent_session="tmux:x; rm -rf ~ $(id)")
        said = shop.ok("doctor").out
        assert "--agent-session 'tmux:x; rm -rf ~ $(id)' --agent" in said


# -- how it is made ----------------------------------------------------------------------------


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path) as made:
        yield made


def dead_process() -> ProcessMark:
    process = subprocess.Popen(["sleep", "60"])
    mark = ProcessMark.of(process.pid)
    assert mark is not None
    process.kill()
    process.wait()
    return mark


def held_job(shop: Clinic, pid: int) -> tuple[Job, ProcessMark]:
    """A job with a lease that has long to run, held by the process of this pid."""
    mark = ProcessMark.of(pid)
    started = mark.started if mark else "1"
    shop.add(shop.agent("good", "behaves"))
    terms = LeaseTerms(owner=f"{shop.registry.node}:{pid}:{started}:0", ttl_sec=600)
    job = shop.registry.claim(LABEL, lease=terms)
    assert job is not None
    return job, mark or dead_process()


@contextmanager
def stranger_of(shop: Clinic, job: Job) -> Iterator[Stranger]:
    """A process of the attempt, whose supervisor is gone."""
    token = new_token()
    write_mark(shop, job, AttemptMark.of(token, dead_process(), shop.registry.node))
    made = Stranger(shop.folder, {"MAM_ATTEMPT_TOKEN": token})
    try:
        yield made
    finally:
        made.end()


def write_mark(shop: Clinic, job: Job, mark: AttemptMark) -> None:
    with Folder.open(str(shop.attempt_folder(job.job_id, job.attempt)), create=True) as folder:
        mark._replace(node=shop.registry.node).write(folder)
