"""Workers die, stop and wake up again, each as a real process: no job is lost, none runs twice."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from mam_core.audit import AuditEvent
from mam_core.config import load
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from mam_core.work.sweep import Act, Sweep, Swept
from mam_core.work.witnesses import Witness, traces_of
from tests.support.handles import close_later
from tests.support.jobs import LABEL
from tests.support.patience import eventually
from tests.support.stopping import stop
from tests.support.supervision import AGENTS, end_surely, with_word

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

#: Nobody answers at the broker's port: news is no part of these stories.
SETTINGS = """\
[defaults]
heartbeat_sec = 0.3
lease_sec = {lease}
sweep_sec = {sweep}
grace_sec = 0.3
[broker]
host = "127.0.0.1"
port = 1
"""
LONG, NEVER = 600, 100_000


class Site:
    """A registry, its workers, and a word by which every process of its agents is known."""

    def __init__(self, folder: Path, lease: float, sweep: float) -> None:
        self.folder = folder
        self.word = f"word-{secrets.token_hex(8)}"
        self._settings = folder / "mam.toml"
        self._settings.write_text(SETTINGS.format(lease=lease, sweep=sweep))
        self._workers: list[subprocess.Popen[bytes]] = []
        self.registry = self.open()

    def open(self) -> Registry:
        return close_later(
            open_registry(str(self.folder / "jobs"), config=load(str(self._settings)))
        )

    def register(self, script: str) -> str:
        request = {"prompt": script, "agent": "shell", "agent_session": LABEL, "workdir": "/"}
        return self.registry.register([request])[0].job_id

    def hostile(self) -> str:
        """A job of five processes that do not want to end."""
        program = f"'{sys.executable}' -I -S '{AGENTS / 'hostile.py'}' {self.word}"
        return self.register(f"exec {program}")

    def work(self, *options: str) -> subprocess.Popen[bytes]:
        words = ["--agent-session", LABEL, "--agents", "shell", *options]
        place = ["--registry-dir", str(self.folder / "jobs"), "--config", str(self._settings)]
        worker = subprocess.Popen(
            [sys.executable, "-m", "mam_core.cli.main", "work", *words, *place],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        self._workers.append(worker)
        return worker

    def until_it_runs(self, job_id: str, attempt: int = 1) -> Job:
        """All five are there."""
        log = self.folder / "delegate_job_logs" / job_id / "attempts" / str(attempt) / "output.log"
        eventually(lambda: log.exists() and b"ready" in log.read_bytes(), "the agent runs")
        return self.registry.get(job_id)

    def stop(self, worker: subprocess.Popen[bytes]) -> None:
        stop(worker.pid, self.folder / "jobs")

    def until_swept(self, sweep: Sweep, act: Act) -> Swept:
        found: list[Swept] = []

        def is_there() -> bool:
            found.extend(one for one in sweep.once() if one.act is act)
            return bool(found)

        eventually(is_there, f"swept: {act}")
        return found[0]

    def alive(self) -> list[int]:
        return with_word(self.word)

    def told(self, job_id: str, event: AuditEvent) -> list[dict[str, object]]:
        return [one for one in self.registry.store.audit.events(job_id) if one["event"] == event]

    def clean(self) -> None:
        for worker in self._workers:
            with suppress(ProcessLookupError):
                worker.kill()
            worker.wait()
        for pid in self.alive():
            end_surely(pid)
        eventually(lambda: not self.alive(), "nothing is left")
        self.registry.store.close()


@contextmanager
def site(folder: Path, *, lease: float = LONG, sweep: float = NEVER) -> Iterator[Site]:
    made = Site(folder, lease, sweep)
    try:
        yield made
    finally:
        made.clean()


def kill(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    worker.wait()


def test_a_worker_killed_gives_its_job_back_long_before_the_lease_is_over(tmp_path: Path) -> None:
    """The processes are the first witness; nothing of the attempt is alive when it comes back."""
    with site(tmp_path) as here:
        job_id = here.hostile()
        worker = here.work()
        here.until_it_runs(job_id)
        sweep = Sweep(here.registry, grace_sec=0.3)
        assert sweep.once() == []
        kill(worker)
        attempt = Path(here.registry.store.audit.path) / job_id / "attempts" / "1"
        assert (attempt / "prompt").exists()
        (attempt / ".prompt.half.tmp").write_text("killed while it wrote")
        swept = here.until_swept(sweep, Act.REQUEUED)
        assert here.alive() == []
        assert swept.witness is Witness.PROCESSES
        left = {path.name for path in attempt.iterdir()}
        assert "process.json" in left, "what it was stays known"
        assert not any("prompt" in name for name in left), "what it was asked for does not stay"
        job = here.registry.get(job_id)
        assert (job.status, job.reason, job.failures) == (Status.PENDING, Reason.LOST, 0)


def test_a_zombie_worker_cannot_end_the_newer_attempt(tmp_path: Path) -> None:
    """SIGSTOP, the lease passes, SIGCONT: what it ran is gone, and what it says is refused."""
    with site(tmp_path, lease=2) as here:
        job_id = here.hostile()
        worker = here.work("--once")
        here.until_it_runs(job_id)
        here.stop(worker)
        sweep = Sweep(here.registry, grace_sec=0.3)
        swept = here.until_swept(sweep, Act.REQUEUED)
        assert here.alive() == []
        assert swept.witness is Witness.LEASE
        newer = here.registry.claim(LABEL)
        assert newer is not None
        worker.send_signal(signal.SIGCONT)
        worker.wait(60)
        now = here.registry.get(job_id)
        assert (now.status, now.attempt, now.last_seq) == (
            Status.RUNNING,
            2,
            newer.last_seq,
        )
        assert here.told(job_id, AuditEvent.STALE)


def test_a_stopped_supervisor_of_a_dead_worker_is_no_hiding_place(tmp_path: Path) -> None:
    """It cannot end its tree; when the lease is over, the sweep ends it and the tree."""
    with site(tmp_path, lease=2) as here:
        job_id = here.hostile()
        worker = here.work()
        job = here.until_it_runs(job_id)
        mark = traces_of(here.registry.store.audit, job).mark
        assert mark is not None
        end_surely(mark.supervisor.pid, signal.SIGSTOP)
        kill(worker)
        assert here.until_swept(Sweep(here.registry, grace_sec=0.3), Act.REQUEUED)
        assert here.alive() == []
        assert not mark.supervisor.is_alive


def test_a_cancel_outlives_the_worker_that_it_was_told_to(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        job_id = here.hostile()
        worker = here.work()
        here.until_it_runs(job_id)
        here.stop(worker)
        assert here.registry.request_cancel(job_id).is_cancelling
        kill(worker)
        here.until_swept(Sweep(here.registry, grace_sec=0.3), Act.CANCELLED)
        assert here.registry.get(job_id).status is Status.CANCELLED
        assert here.alive() == []


def test_many_sweeps_at_once_give_each_job_back_once(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        job_ids = [here.register(f"sleep 300 # {n}\nexit 0") for n in range(6)]
        worker = here.work("--slots", "6")
        eventually(
            lambda: all(here.told(one, AuditEvent.ATTEMPT_STARTED) for one in job_ids),
            "all of them run",
        )
        kill(worker)
        swept: list[Swept] = []
        is_over = threading.Event()

        def go_on() -> None:
            with here.open() as registry:
                sweep = Sweep(registry, grace_sec=0.3)
                while not is_over.wait(0.05):
                    swept.extend(sweep.once())

        threads = [threading.Thread(target=go_on) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            eventually(
                lambda: all(here.registry.get(one).status is Status.PENDING for one in job_ids),
                "all of them are back",
            )
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
        assert sorted(one.job_id for one in swept) == sorted(job_ids)
        assert all(here.registry.get(one).losses == 1 for one in job_ids)
        assert not any(here.told(one, AuditEvent.REFUSED) for one in job_ids)


def test_workers_take_over_from_one_another(tmp_path: Path) -> None:
    """No sweep of ours: the one that is left finds what the dead one had, and completes it."""
    with site(tmp_path, sweep=0.3) as here:
        flag = tmp_path / "second-time"
        job_id = here.register(f"test -e {flag} || {{ touch {flag}; sleep 300; }}")
        first = here.work()
        eventually(flag.exists, "the first attempt runs")
        here.work()
        kill(first)
        eventually(
            lambda: here.registry.get(job_id).status is Status.COMPLETED, "the second completes it"
        )
        job = here.registry.get(job_id)
        assert (job.attempt, job.failures, job.losses) == (2, 0, 1)
