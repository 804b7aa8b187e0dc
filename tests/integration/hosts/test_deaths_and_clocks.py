"""What two hosts outlive: a console, a broker, and clocks that are five minutes apart."""

from __future__ import annotations

import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.records import Status
from tests.integration.hosts.farm import Farm, farm
from tests.support.patience import eventually
from tests.support.terminal import terminal
from tests.support.watching import MAM

pytestmark = pytest.mark.timeout(300)

#: Short, because the test waits for it to expire. A worker ends its attempt after 80 % of it
#: without a renewal, so a stall of more than six seconds fails the test.
_LEASE_SEC = 8.0
#: Works until it is told, with a patience that no lease has.
_UNTIL_TOLD = "while [ ! -e go ]; do sleep 0.1; done; echo done"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Farm]:
    with farm(tmp_path) as made:
        yield made


def test_a_broker_that_is_killed_costs_no_event(two: Farm, tmp_path: Path) -> None:
    """Its messages wait in the database, and whoever watches is told each once, in order."""
    two.settle()
    job_id = two.add(_UNTIL_TOLD)
    with two.watch_all(two.oak) as watch, two.work(two.elm):
        eventually(lambda: two.processes_of(job_id, 1), "its agent")
        two.broker.kill()
        (tmp_path / "go").touch()
        job = two.until(job_id, Status.COMPLETED)
        assert (job.attempt, two.claims(job_id)) == (1, [1])
        two.broker.start()
        wanted = list(range(1, job.last_seq + 1))
        eventually(lambda: two.events_of(watch.out, job_id) == wanted, "once, and in order", 90)
        eventually(lambda: two.history(job_id).count("published") == job.last_seq, "sent", 90)


def test_a_console_that_is_killed_changes_nothing(two: Farm, tmp_path: Path) -> None:
    """Fault 5: the job goes on, and the next console shows it."""
    two.settle()
    job_id = two.add(_UNTIL_TOLD)
    console = shlex.join(two.oak.command(*MAM))
    with two.work(two.elm), terminal(two.home(two.oak)) as shown:
        eventually(lambda: two.processes_of(job_id, 1), "its agent")
        shown.run(console)
        shown.until(job_id, "running")
        for program in shown.programs():
            program.send_signal(signal.SIGKILL)
        shown.run("reset")
        shown.run(console)
        shown.until(job_id, "running")
        (tmp_path / "go").touch()
        shown.until(job_id, "completed")
        assert (two.job(job_id).attempt, two.claims(job_id)) == (1, [1])


@pytest.mark.parametrize("ahead", [300, pytest.param(-300, marks=pytest.mark.release)])
def test_clocks_that_are_five_minutes_apart_cost_nothing(
    two: Farm, tmp_path: Path, ahead: float
) -> None:
    """Fault 66: no lease ends early, and one whose worker died ends in time."""
    two.settle(heartbeat_sec=0.5, lease_sec=_LEASE_SEC, sweep_sec=0.5, grace_sec=0.5)
    job_id = two.add(_UNTIL_TOLD)
    with two.work_with_a_wrong_clock(two.elm, ahead) as wrong:
        eventually(lambda: two.processes_of(job_id, 1), "its agent")
        with two.work(two.oak):
            # Long enough for the lease to end, and for some sweeps that went by the wall.
            time.sleep(1.5 * _LEASE_SEC)
            job = two.job(job_id)
            assert (job.status, job.attempt, job.node) == (Status.RUNNING, 1, "elm")
            wrong.send(signal.SIGKILL)
            eventually(lambda: two.job(job_id).attempt == 2, "the second attempt", 90)
            assert two.processes_of(job_id, 1) == []
            (tmp_path / "go").touch()
            assert two.until(job_id, Status.COMPLETED).node == "oak"
            assert two.claims(job_id) == [1, 2]
