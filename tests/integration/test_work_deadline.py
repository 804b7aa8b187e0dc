"""A worker that is stopped or blocked: its supervisors end what it runs when the time has come.

Where hosts share the store, that is the end of the lease; everywhere, that of the job's own time.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import time
from pathlib import Path

import pytest

from mam_core.records import Reason, Status
from mam_core.work.processes import look
from tests.support.forwarder import pooler
from tests.support.live import live_shop
from tests.support.patience import eventually
from tests.support.supervision import stand_in
from tests.support.watching import Watched
from tests.support.working import Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

#: Short, since tests wait for it to end; renewed often, since the machine may be busy.
LEASE = {"heartbeat_sec": 0.5, "lease_sec": 4.0}
#: Also where a renewal succeeded that came too late.
_SAID = re.compile(r"its lease could not be renewed for [1-9]\d* s")


@pytest.fixture
def shared(shop: Workshop, postgres_schema: str) -> Workshop:
    shop.keep_in(postgres_schema)
    shop.set(**LEASE)
    return shop


def says_that_it_lost(worker: Watched) -> None:
    lines = (worker.out, worker.err)
    eventually(lambda: any(_SAID.search(line) for each in lines for line in each), _SAID.pattern)


class TestTheLeaseOfAStoreThatHostsShare:
    def test_ends_what_a_stopped_worker_runs(self, shared: Workshop) -> None:
        """Also one that ignores what it is asked; the worker says so when it wakes up."""
        job_id = shared.add(shared.agent("stubborn", "hostile"), max_attempts=1)
        with shared.mam_work() as worker:
            shared.until_said(job_id, "ready")
            worker.send(signal.SIGSTOP)
            shared.until_nobody_lives()
            assert (shared.job(job_id).status, shared.job(job_id).attempt) == (Status.RUNNING, 1)
            worker.send(signal.SIGCONT)
            says_that_it_lost(worker)
            eventually(lambda: shared.job(job_id).attempt == 2, "it is run again")
            assert shared.job(job_id).failures == 0

    def test_ends_what_a_worker_runs_whose_pooler_hangs(
        self, shared: Workshop, postgres_schema: str
    ) -> None:
        with pooler(postgres_schema) as (between, uri):
            shared.keep_in(uri)
            job_id = shared.add(shared.agent("hangs", "hangs"))
            with shared.mam_work() as worker:
                shared.until_said(job_id, "stand-in")
                between.hang()
                shared.until_nobody_lives()
                between.go_on()
                says_that_it_lost(worker)
                eventually(lambda: shared.job(job_id).attempt == 2, "it is run again")

    def test_ends_a_check_as_well(self, shared: Workshop) -> None:
        line = shlex.join([*stand_in("hangs"), shared.word])
        job_id = shared.add(shared.agent("done", "says_done"), validate=f"touch checks; {line}")
        with shared.mam_work() as worker:
            eventually((shared.workdir / "checks").exists, "the check runs")
            eventually(shared.survivors, "its program runs")
            worker.send(signal.SIGSTOP)
            shared.until_nobody_lives()
            assert shared.job(job_id).attempt == 1
            worker.send(signal.SIGCONT)
            says_that_it_lost(worker)

    def test_binds_a_live_agent_during_its_jobs_and_not_between_them(
        self, tmp_path: Path, postgres_schema: str
    ) -> None:
        with live_shop(tmp_path) as live, pooler(postgres_schema) as (between, uri):
            live.keep_in(uri)
            live.set(**LEASE)
            live.stand_in()
            live.open()
            first = live.order("say first words")
            assert live.ended(first).status is Status.COMPLETED
            # It is completed a moment before its worker is through with it.
            at_hand = ("display-message", "-p", "-t", "live", "#{@job_id}")
            eventually(lambda: not live.tmux(*at_hand).strip(), "its worker is through with it")
            (agent,) = live.survivors()
            between.hang()  # so that nobody could renew anything
            until = time.monotonic() + 1.5 * LEASE["lease_sec"]
            eventually(lambda: time.monotonic() > until, "more than a lease passes")
            assert look(agent) is not None
            between.go_on()
            second = live.order("until go")
            eventually(lambda: "accepted" in live.stages(second), "the same agent works")
            assert live.survivors() == [agent]
            between.hang()
            eventually(lambda: look(agent) is None, "the agent is gone")
            between.go_on()


class TestTheTimeOfAJob:
    def test_is_over_whatever_its_worker_does(self, shop: Workshop) -> None:
        """Also in a store of one host, where nobody has to give anything up."""
        job_id = shop.add(shop.agent("hangs", "hangs"), timeout_sec=2)
        with shop.mam_work() as worker:
            shop.until_said(job_id, "stand-in")
            worker.send(signal.SIGSTOP)
            shop.until_nobody_lives()
            assert shop.job(job_id).status is Status.RUNNING
            worker.send(signal.SIGCONT)
            job = shop.until_status(job_id, Status.ERROR)
            assert (job.reason, job.detail) == (Reason.TIMEOUT, "it ran for 2 s")
