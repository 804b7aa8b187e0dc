"""Two folders of one host that share a database: each has a log, and so marks, of its own."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mam_core.clock import Clock, SystemClock
from mam_core.disk import Folder
from mam_core.leases import LeaseTerms
from mam_core.process_mark import ProcessMark
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.store_urls import StoreUrl
from mam_core.wiring import store_at
from mam_core.work.marks import AttemptMark
from mam_core.work.orders import new_token
from mam_core.work.sweep import Act, Sweep
from mam_core.work.witnesses import Witness
from tests.support.clock import FakeClock
from tests.support.handles import close_later
from tests.support.jobs import running
from tests.support.patience import eventually
from tests.support.process_marks import dead, us

NODE = "host"
#: Over as soon as somebody looks.
_TTL_SEC = 0.1

Open = Callable[..., Registry]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_schema"))
    return f"sqlite:///{tmp_path}/shared/jobs.sqlite"


@pytest.fixture
def opened(url: str, tmp_path: Path) -> Open:
    """By the name of the folder."""

    def made(name: str, clock: Clock | None = None) -> Registry:
        store = store_at(StoreUrl.parse(url), str(tmp_path / name / "jobs"))
        return close_later(Registry(store, clock=clock or SystemClock(), actor="ann", node=NODE))

    return made


def claimed(registry: Registry, worker: ProcessMark, ttl_sec: float = _TTL_SEC) -> Job:
    owner = f"{NODE}:{worker.pid}:{worker.started}:0"
    return running(registry, lease=LeaseTerms(owner, ttl_sec))


def leave_mark(registry: Registry, job: Job, supervisor: ProcessMark) -> None:
    place = Path(registry.store.audit.path, job.job_id, "attempts", str(job.attempt))
    with Folder.open(str(place), create=True) as folder:
        AttemptMark.of(new_token(), supervisor, NODE).write(folder)


def is_expired(registry: Registry, job: Job) -> None:
    lease = job.lease
    assert lease is not None
    eventually(lambda: registry.lease_expired(lease), "its lease is over")


@pytest.fixture
def agent() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process
        process.kill()


def test_what_the_other_folder_runs_is_ended_before_its_job_is_given_back(
    opened: Open, agent: subprocess.Popen[bytes]
) -> None:
    here, there = opened("here"), opened("there")
    job = claimed(there, us())
    supervisor = ProcessMark.of(agent.pid)
    assert supervisor is not None
    leave_mark(there, job, supervisor)
    is_expired(here, job)
    (swept,) = Sweep(here, grace_sec=0.2).once()
    assert swept.act is Act.REQUEUED
    assert "what it ran was ended" in swept.words
    assert agent.wait() == -signal.SIGTERM


def test_a_worker_of_the_other_folder_that_was_killed_is_missed_before_its_lease_is_over(
    opened: Open,
) -> None:
    there = opened("there")
    job = claimed(there, dead(), 300)
    leave_mark(there, job, dead())
    (swept,) = Sweep(opened("here")).once()
    assert (swept.act, swept.witness) == (Act.REQUEUED, Witness.PROCESSES)


def test_a_log_that_is_not_here_proves_nothing(opened: Open, url: str, tmp_path: Path) -> None:
    """As that of a container with the name of this host."""
    job = claimed(opened("there"), us())
    shutil.rmtree(tmp_path / "there", ignore_errors=True)
    here = opened("here")
    is_expired(here, job)
    swept = Sweep(here).once()
    if url.startswith("sqlite"):
        assert [(one.act, "which does not exist" in one.words) for one in swept] == [
            (Act.STALE, True)
        ]
    else:  # whoever has it ends it by itself, so that it comes back in time
        assert swept == []
    assert here.get(job.job_id).status is Status.RUNNING


class TestWhereHostsShareTheDatabase:
    @pytest.fixture
    def url(self, postgres_schema: str) -> str:
        return postgres_schema

    def test_no_mark_in_a_record_of_before_proves_nothing(self, opened: Open) -> None:
        """Its lease does not say where the log of its worker is."""
        there = opened("there")
        job = claimed(there, us())
        assert job.lease is not None
        with there.changing(job.job_id) as (tx, _):
            tx.put(job.evolve(lease=job.lease._replace(logs="")), None)
        here = opened("here")
        is_expired(here, job)
        assert Sweep(here).once() == []

    def test_a_host_of_the_same_name_was_not_started_anew(self, opened: Open) -> None:
        job = claimed(opened("there", FakeClock(boot="of another machine")), us(), 300)
        here = opened("here")
        assert Sweep(here).once() == []
        assert here.get(job.job_id).status is Status.RUNNING

    def test_our_own_mark_of_another_boot_says_that_we_were(self, opened: Open) -> None:
        before = FakeClock(boot="before")
        job = claimed(opened("here", before), us(), 300)
        here = opened("here")
        leave_mark(here, job, ProcessMark(us().pid, us().started, before.boot_id()))
        (swept,) = Sweep(here).once()
        assert (swept.act, swept.witness) == (Act.REQUEUED, Witness.BOOT)
