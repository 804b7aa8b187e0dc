"""Workers that end by themselves, as cron starts them: with nobody else there, no job is left.

Such a worker looks for lost jobs when it begins and before it ends, and waits for a failed job's
next try, which is its own. It waits for nothing that somebody else decides.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mam_core.clock import stamp
from mam_core.leases import LeaseTerms
from mam_core.records import Reason, Status
from mam_core.stores.base import GateKind, Query
from mam_core.work.submissions import FOLDER
from mam_core.work.worker import Stops, Until
from tests.support.patience import PATIENCE_SEC, eventually
from tests.support.process_marks import dead
from tests.support.working import LABEL, Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

ENDINGS = ["--drain", "--once"]
RECORD = "$MAM_REGISTRY_DIR/$MAM_JOB_ID.json"


def hangs_once(shop: Workshop) -> str:
    """Its first attempt never ends, every other one at once."""
    line = "test -e been && exit; touch been; echo hangs; sleep 600"
    return shop.agent("hangs-once", "/bin/sh", "-c", line, shop.word)


def killed_at_work(shop: Workshop, *, supervisor_stopped: bool = False) -> str:
    """A job whose worker was killed, and nobody else is there."""
    job_id = shop.add(hangs_once(shop))
    with shop.mam_work() as worker:
        shop.until_said(job_id, "hangs")
        for supervisor in shop.supervisors() if supervisor_stopped else ():
            supervisor.suspend()
        worker.send(signal.SIGKILL)
        worker.process.wait()
    return job_id


@pytest.mark.parametrize("how", ENDINGS)
class TestAKilledWorker:
    def test_that_left_nothing_alive_gives_its_job_to_the_next_run(
        self, shop: Workshop, how: str
    ) -> None:
        """Its lease has half a minute left, and nobody waits for that."""
        job_id = killed_at_work(shop)
        shop.until_nobody_lives()
        eventually(lambda: not shop.supervisors(), "its supervisor has ended as well")
        with shop.mam_work(how) as run:
            assert run.code() == 0
        job = shop.job(job_id)
        assert (job.status, job.attempt, job.failures) == (Status.COMPLETED, 2, 0)
        assert shop.audit(job_id, "status_changed")[1]["reason"] == Reason.LOST

    def test_that_had_started_nothing_gives_it_when_its_lease_is_over(
        self, shop: Workshop, how: str
    ) -> None:
        job_id = shop.add(shop.agent("good", "behaves"))
        worker = dead()
        terms = LeaseTerms(f"{shop.registry.node}:{worker.pid}:{worker.started}:0", 0.2)
        assert shop.registry.claim(LABEL, lease=terms) is not None
        lease = shop.job(job_id).lease
        assert lease is not None
        eventually(lambda: shop.registry.lease_expired(lease), "its lease is over")
        with shop.mam_work(how) as run:
            assert run.code() == 0
        assert shop.job(job_id).status is Status.COMPLETED

    def test_whose_agent_lives_on_has_it_ended_first(self, shop: Workshop, how: str) -> None:
        """Its supervisor was stopped, and does not see that the worker has gone."""
        shop.set(lease_sec=1.0, heartbeat_sec=0.3)
        job_id = killed_at_work(shop, supervisor_stopped=True)
        lease = shop.job(job_id).lease
        assert lease is not None
        eventually(lambda: shop.registry.lease_expired(lease), "its lease is over")
        try:
            with shop.mam_work(how) as run:
                assert run.code() == 0
        finally:
            for supervisor in shop.supervisors():  # or it would sleep for ever
                supervisor.kill()
        job = shop.job(job_id)
        assert (job.status, job.attempt) == (Status.COMPLETED, 2)
        assert not shop.survivors()

    def test_that_only_stopped_keeps_its_job_while_its_lease_holds(
        self, shop: Workshop, how: str
    ) -> None:
        job_id = shop.add(hangs_once(shop))
        with shop.mam_work() as worker:
            shop.until_said(job_id, "hangs")
            with shop.mam_work(how) as run:
                assert run.code() == 0
            job = shop.job(job_id)
            assert (job.status, job.attempt) == (Status.RUNNING, 1)
            worker.send(signal.SIGKILL)


def test_a_short_wait_brings_a_lost_job_back(shop: Workshop) -> None:
    """Whoever waits again and again, for a moment each time, does what one does who stays."""
    job_id = killed_at_work(shop)
    shop.until_nobody_lives()
    eventually(lambda: not shop.supervisors(), "its supervisor has ended as well")
    with shop.mam("wait", job_id, "--timeout", "0.2") as waiting:
        waiting.code()
    assert shop.job(job_id).status is Status.PENDING


def test_a_schedule_that_is_due_is_run_by_the_drain_that_finds_it(shop: Workshop) -> None:
    """Also where that worker is the only command that lives, and no job waited for it."""
    shop.agent("good", "behaves")
    shop.settle()
    with (shop.folder / "mam.toml").open("a") as settings:
        settings.write(
            f'''
[templates.tick]
prompt = "tick"
agent = "good"
agent_session = "{LABEL}"
workdir = "{shop.workdir}"
[schedules.tick]
every = "1s"
template = "tick"
'''
        )
    words = ["work", "--label", LABEL, "--drain"]

    def ran() -> bool:
        with shop.mam(*words) as run:
            assert run.code() == 0
        found = shop.registry.store.find(Query())[0]
        assert all(job.status is Status.COMPLETED for job in found)
        return bool(found)

    eventually(ran, "a moment has come")


def test_a_submission_that_was_killed_is_cancelled_by_a_drain(shop: Workshop) -> None:
    shop.agent("good", "behaves")
    with shop.mam("pause", "--all") as paused:
        assert paused.code() == 0
    with shop.mam("submit", "--agent", "good", "--prompt", "x") as submitted:
        submitted.until(lambda: shop.registry.store.find(Query())[0], "its job is there")
        submitted.send(signal.SIGKILL)
        submitted.process.wait()
    with shop.mam_work("--drain") as run:
        assert run.code() == 0
    [job] = shop.registry.store.find(Query())[0]
    assert job.status is Status.CANCELLED
    assert not os.listdir(shop.path / FOLDER)


def failed_once(shop: Workshop, *, due_sec: float = 3.0, group: str | None = None) -> str:
    """A job whose first attempt has failed; the second is due then."""
    job_id = shop.add(shop.agent("good", "behaves"), max_attempts=3, group=group)
    assert shop.registry.claim(LABEL) is not None
    due = time.time() + due_sec
    shop.registry.requeue(job_id, Reason.EXIT, attempt=1, failed=True, not_before=due)
    return job_id


def fill_group(shop: Workshop, job_id: str) -> None:
    shop.registry.set_slots("g", 0)


def pause_agent(shop: Workshop, job_id: str) -> None:
    shop.registry.pause(GateKind.AGENT, "good", why="a person says so")


def drain_host(shop: Workshop, job_id: str) -> None:
    shop.registry.pause(GateKind.NODE, shop.registry.node, why="a person says so")


def set_far_date(shop: Workshop, job_id: str) -> None:
    shop.registry.edit(job_id, {"not_before": stamp(time.time() + 3600)})


def move_to_another_label(shop: Workshop, job_id: str) -> None:
    shop.registry.edit(job_id, {"agent_session": "somebody-else"})


def give_to_another_agent(shop: Workshop, job_id: str) -> None:
    shop.registry.edit(job_id, {"agent": "nobody"})


class TestARetry:
    """Of a job that failed, with attempts left."""

    def test_is_waited_for(self, shop: Workshop) -> None:
        job_id = failed_once(shop, due_sec=2.0)
        assert shop.drain().ran == 1
        assert shop.job(job_id).status is Status.COMPLETED

    def test_brings_what_comes_after_it(self, shop: Workshop) -> None:
        job_id = failed_once(shop, due_sec=2.0)
        child = shop.add("good", after=[job_id])
        assert shop.drain().ran == 2
        assert shop.job(child).status is Status.COMPLETED

    @pytest.mark.parametrize(
        "hold",
        [
            *(fill_group, pause_agent, drain_host, set_far_date),
            *(move_to_another_label, give_to_another_agent),
        ],
    )
    def test_that_something_else_holds_back_is_not(
        self, shop: Workshop, hold: Callable[[Workshop, str], None]
    ) -> None:
        job_id = failed_once(shop, group="g")
        hold(shop, job_id)
        assert shop.drain().ran == 0
        assert shop.job(job_id).status is Status.PENDING

    def test_after_a_usage_limit_is_not(self, shop: Workshop) -> None:
        job_id = failed_once(shop, due_sec=0.0)
        assert shop.registry.claim(LABEL) is not None
        due = time.time() + 3.0
        shop.registry.requeue(job_id, Reason.QUOTA, attempt=2, not_before=due)
        assert shop.drain().ran == 0

    def test_is_not_waited_for_by_one_that_runs_once(self, shop: Workshop) -> None:
        failed_once(shop)
        assert shop.drain(until=Until.ONCE).ran == 0

    def test_keeps_nobody_who_is_asked_to_end(self, shop: Workshop) -> None:
        job_id = failed_once(shop, due_sec=9.0)
        stops = Stops()
        worker = shop.worker(stops=stops)
        thread = threading.Thread(target=worker.run)
        thread.start()
        stops.finish()
        thread.join(PATIENCE_SEC)
        assert not thread.is_alive()
        assert shop.job(job_id).status is Status.PENDING


@pytest.mark.parametrize("how", ENDINGS)
@pytest.mark.parametrize("what", ["folder", "database", "record"])
def test_a_registry_that_is_gone_ends_it_with_a_sentence(
    shop: Workshop, tmp_path: Path, how: str, what: str
) -> None:
    """Its agent removes the registry: there is nowhere to write the result, now or ever."""
    database, aside = tmp_path / "registry.sqlite", tmp_path / "aside"
    words = ["--store", f"sqlite:{database}"] if what == "database" else []
    line, sentence = {
        # At once: `rm -r` would find new files in it, and leave the folder where it is.
        "folder": (f"mv {shop.path} {aside}", f"{shop.path} was removed or replaced while"),
        "database": (f"rm {database}*", f"{database} was removed or replaced while"),
        # Again where the worker was just writing it, and put it back.
        "record": (
            f"while [ -e {RECORD} ]; do rm {RECORD}; sleep 0.5; done",
            "was removed from",
        ),
    }[what]
    shop.agent("removes", "/bin/sh", "-c", line, shop.word)
    register = ["--label", LABEL, "--agent", "removes", "--prompt", "x"]
    with shop.mam("register", *register, "--workdir", str(shop.workdir), *words) as registered:
        assert registered.code() == 0
    with shop.mam_work(how, *words) as run:
        assert run.code() == 1
    assert len(run.says(sentence)) == 1
