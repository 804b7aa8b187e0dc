"""``mam cancel`` on jobs in every place where a job can be, with who and why in their history."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mam_core.clock import parse_stamp
from mam_core.config import Config
from mam_core.operations.cancel import awaited
from mam_core.operations.outcome import Outcome
from mam_core.operations.past import past
from mam_core.records import Reason, Status
from mam_core.stores.base import GateKind
from mam_core.work import hold
from mam_core.work.orders import GRACE_SEC, PROMISED_SEC
from mam_core.work.worker import Until
from tests.support.patience import eventually
from tests.support.repositories import git, new_repository, private_git
from tests.support.working import Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

WHY = "wrong branch"


def asking(shop: Workshop) -> str:
    """An agent that asks a person, and waits for the answer."""
    ask = f"'{sys.executable}' -m mam_core.cli.main publish --job $MAM_JOB_ID"
    line = f"{ask} --event permission_required --detail 'may I?' 2>/dev/null; exec sleep 300"
    return shop.agent("asker", "/bin/sh", "-c", line, shop.word)


def cancel(shop: Workshop, *job_ids: str) -> tuple[int, list[str], list[str]]:
    """By the command, as bea."""
    environ = {**os.environ, "USER": "bea"}
    with shop.mam("cancel", *job_ids, "--why", WHY, environ=environ) as cancelled:
        return cancelled.code(), cancelled.out, cancelled.err


def wish(shop: Workshop, job_id: str) -> dict[str, Any]:
    """The line of history that says who wished it, and why."""
    asked = shop.audit(job_id, "cancel_requested")
    if not asked:
        asked = [one for one in shop.audit(job_id, "status_changed") if one["cause"] == "cancel"]
    return asked[-1]


def is_cancelled_by_bea(shop: Workshop, job_id: str) -> None:
    job = shop.until_status(job_id, Status.CANCELLED)
    assert (job.reason, job.failures, job.lease) == (Reason.CANCELLED, 0, None)
    assert job.cancel_requested_by == "bea"
    assert WHY in (job.detail or "")
    line = wish(shop, job_id)
    assert line["by"] == "bea"
    assert WHY in (line.get("why"), line.get("detail"))


def test_many_at_once_wherever_they_are(shop: Workshop) -> None:
    """Issue 5, 6: pending, running, waiting for a person, and over, in one command."""
    stuck = shop.agent("stuck", "hangs")
    runs, waits = shop.add(stuck), shop.add(asking(shop))
    with shop.at_work(slots=2):
        shop.until_said(runs, "hangs")
        shop.registry.pause(GateKind.ALL)
        pending = shop.add(stuck)
        over = shop.add(stuck)
        shop.registry.set_status(over, Status.COMPLETED)
        eventually(lambda: "permission_required" in shop.names(waits), "it asks")
        code, out, err = cancel(shop, pending, runs, over, waits)
        assert (code, out) == (1, [pending, runs, waits])
        assert any(f"job {over} is completed: there is nothing to cancel" in line for line in err)
        for job_id in (pending, runs, waits):
            is_cancelled_by_bea(shop, job_id)
        assert not shop.survivors()
    assert shop.job(over).status is Status.COMPLETED
    assert shop.job(pending).attempt == 0


def test_one_that_waits_for_its_next_try(shop: Workshop) -> None:
    """It failed, and is pending until its pause is over: cancelled, it is not tried again."""
    job_id = shop.add(shop.agent("bad", "exits_three"), max_attempts=3)
    shop.drain(until=Until.ONCE)  # one that drains would wait for the next try, too
    assert shop.job(job_id).not_before is not None
    assert cancel(shop, job_id)[0] == 0
    shop.until_status(job_id, Status.CANCELLED)
    assert wish(shop, job_id)["by"] == "bea"
    assert (shop.job(job_id).attempt, shop.job(job_id).failures) == (1, 1)


def test_one_whose_worker_is_lost(shop: Workshop) -> None:
    """Nobody is there who could be asked: whoever sweeps next does it, and proves it."""
    shop.set(sweep_sec=1000.0)
    job_id = shop.add(shop.agent("hostile", "hostile"))
    with shop.mam_work() as worker:
        shop.until_said(job_id, "ready")
        worker.send(signal.SIGKILL)
        worker.process.wait()
    code, out, err = cancel(shop, job_id)
    assert (code, out) == (0, [job_id])
    assert "is cancelling" in err[0]
    (given_up,) = awaited(shop.registry, [Outcome(job_id, True, err[0], shop.job(job_id))], 0.1)
    assert not given_up.ok
    assert "still running after 0.1 s" in given_up.message
    shop.set(sweep_sec=0.2)
    with shop.mam("watch", "--all"):
        is_cancelled_by_bea(shop, job_id)
    assert not shop.survivors()


class TestWithinTheGraceAndTwoSeconds:
    """Promise 5, with the settings of somebody who set nothing."""

    def test_there_is_time_for_all_that_must_happen(self) -> None:
        """The wish is noticed, TERM, the grace, KILL; and a second is left to prove it."""
        usual = Config().defaults
        assert usual.grace_sec == GRACE_SEC
        assert hold.LOOK_SEC + usual.grace_sec + 1 <= PROMISED_SEC

    @pytest.mark.release
    @pytest.mark.parametrize("by_clock", [False, True], ids=["cancel", "timeout"])
    def test_nothing_is_alive(self, shop: Workshop, by_clock: bool) -> None:
        """Measured from before the command is started, whose own time counts, too."""
        shop.set_nothing()
        lasts = 2 if by_clock else 300
        job_id = shop.add(shop.agent("hostile", "hostile"), timeout_sec=lasts)
        with shop.mam_work():
            shop.until_said(job_id, "ready")
            begin = parse_stamp(shop.audit(job_id, "attempt_started")[0]["timestamp"]) + lasts
            if not by_clock:
                begin = time.time()
                assert cancel(shop, job_id)[0] == 0
            eventually(lambda: not shop.survivors(), "nothing is alive")
            took = time.time() - begin
            shop.until_status(job_id, Status.CANCELLED, Status.ERROR)
        assert took <= PROMISED_SEC
        assert shop.audit(job_id, "attempt_ended")[0]["killed"] >= 1


@pytest.mark.parametrize("status", [Status.ERROR, Status.COMPLETED])
def test_one_that_is_over_stays_as_it_is(shop: Workshop, status: Status) -> None:
    job_id = shop.add(shop.agent("stuck", "hangs"))
    shop.registry.set_status(job_id, status)
    before = shop.job(job_id)
    code, out, _ = cancel(shop, job_id)
    assert (code, out) == (1, [])
    assert shop.job(job_id) == before


def test_what_a_cancelled_job_left_behind_is_said(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the answer of `mam cancel --wait`, in its record, and in its history."""
    private_git(monkeypatch, tmp_path)
    repo = new_repository(tmp_path / "repo")
    git(repo, "switch", "-q", "-c", "mam/x")
    line = "echo 1 > one; echo 2 > two; echo ready; exec sleep 300"
    job_id = shop.add(shop.agent("writer", "/bin/sh", "-c", line, shop.word), workdir=str(repo))
    with shop.at_work():
        shop.until_said(job_id, "ready")
        with shop.mam("cancel", job_id, "--wait", environ=dict(os.environ)) as cancelled:
            assert cancelled.code() == 0
        left = "left 2 changed files on branch mam/x"
        assert cancelled.err == [f"mam: job {job_id} is cancelled; {left}"]
    assert (shop.job(job_id).detail or "").endswith(f"; {left}")
    assert shop.job(job_id).left_behind == left
    assert [one["left"] for one in shop.audit(job_id, "attempt_ended")] == [left]
    assert any(left in change.words for change in past(shop.registry, job_id))
    shop.registry.retry(job_id)
    assert shop.job(job_id).left_behind is None, "the next attempt has left nothing yet"


def test_a_reason_that_reads_like_it_is_not_taken_for_what_was_left(shop: Workshop) -> None:
    job_id = shop.add(shop.agent("sleeper", "/bin/sh", "-c", "echo ready; exec sleep 300"))
    with shop.at_work():
        shop.until_said(job_id, "ready")
        words = ("cancel", job_id, "--wait", "--why", "too slow; left it to Ann")
        with shop.mam(*words, environ=dict(os.environ)) as cancelled:
            assert cancelled.code() == 0
        assert cancelled.err == [f"mam: job {job_id} is cancelled"]
    assert "left it to Ann" in (shop.job(job_id).detail or "")
