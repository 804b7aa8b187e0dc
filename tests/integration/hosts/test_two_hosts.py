"""A second host joins: its jobs are seen, survive a cut cable, and come back when it is gone."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.records import Status
from tests.integration.hosts.farm import LABEL, Farm, farm
from tests.support.patience import eventually
from tests.support.recordings import SAMPLES
from tests.support.supervision import stand_in
from tests.support.watching import Watched

pytestmark = pytest.mark.timeout(300)
RECORDING = SAMPLES / "claude" / "permission.control.jsonl"

#: Begins to count when the cable is cut, whatever the machine needed until then.
_ONCE_CUT = "while [ ! -e cut ]; do sleep 0.1; done; sleep {0}; echo part {0}"
#: Fails on its first host, which is to be lost; the second attempt is quick.
_LOST_FIRST = 'if [ "$MAM_ATTEMPT" = 1 ]; then sleep 200; fi; echo done on attempt $MAM_ATTEMPT'


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Farm]:
    with farm(tmp_path) as made:
        yield made


def told_in_full(two: Farm, watch: Watched, job_id: str, last: int) -> None:
    wanted = list(range(1, last + 1))
    eventually(lambda: two.events_of(watch.out, job_id) == wanted, f"{job_id}: once and in order")


def at_work(two: Farm, job_id: str) -> None:
    eventually(lambda: two.processes_of(job_id, 1), "its agent")


def come_back(two: Farm, job_id: str) -> None:
    """Taken up again, and by then nothing of the first attempt is left."""
    eventually(lambda: two.job(job_id).attempt == 2, "the second attempt", 90)
    assert two.processes_of(job_id, 1) == []


def test_a_cable_that_is_cut_for_eight_seconds_costs_nothing(two: Farm, tmp_path: Path) -> None:
    """L: every event once and in order, every job ended as its first attempt."""
    two.settle()
    jobs = [two.add(_ONCE_CUT.format(seconds)) for seconds in (4, 8, 1, 1)]
    with two.watch_all(two.oak) as watch, two.work(two.elm, "--slots", "2"):
        # Both slots are at work: a claim whose answer is cut off would come back by its lease only.
        for job_id in jobs[:2]:
            at_work(two, job_id)
        two.elm.cut()
        (tmp_path / "cut").touch()
        time.sleep(8)
        two.elm.heal()
        for job_id in jobs:
            job = two.until(job_id, Status.COMPLETED)
            assert (job.attempt, job.node) == (1, "elm")
            assert two.claims(job_id) == [1]
        for job_id in jobs:
            told_in_full(two, watch, job_id, two.job(job_id).last_seq)
        eventually(lambda: two.nodes().get("elm", {}).get("state") == "up", "its word")
        # After a cut its line to the broker may take a moment longer than one question waits.
        eventually(lambda: "part 8" in two.ask(two.oak, "output", jobs[1]).stdout, "its output")
        told = two.ask(two.oak, "why", jobs[1])
        assert "completed" in told.stdout


def test_a_host_that_is_cut_off_ends_what_it_runs_and_another_takes_it_up(two: Farm) -> None:
    """L: no two attempts at once, whatever each side believes."""
    two.settle(heartbeat_sec=1.0, lease_sec=4.0, sweep_sec=1.0, grace_sec=0.5)
    job_id = two.add(_LOST_FIRST)
    with two.work(two.elm) as away:
        two.until(job_id, Status.RUNNING)
        at_work(two, job_id)
        with two.work(two.oak):
            two.elm.cut()
            come_back(two, job_id)
            job = two.until(job_id, Status.COMPLETED)
            assert (job.node, two.claims(job_id)) == ("oak", [1, 2])
            two.elm.heal()
            said = "its lease could not be renewed"
            eventually(lambda: any(said in line for line in [*away.out, *away.err]), said)
            # What the other host reports afterwards about its attempt is refused, and written down.
            eventually(lambda: "refused" in two.history(job_id), "its report")
            assert two.job(job_id).status is Status.COMPLETED


@pytest.mark.parametrize("victim", ["worker", "database"])
def test_a_death_is_survived(two: Farm, victim: str) -> None:
    """kill -9 of a worker, and of PostgreSQL, which is back a moment later."""
    # A worker that dies is missed after its lease; one whose database does needs patience.
    lease_sec = 6.0 if victim == "database" else 3.0
    two.settle(heartbeat_sec=0.5, lease_sec=lease_sec, sweep_sec=0.5, grace_sec=0.5)
    job_id = two.add("sleep 3; echo done" if victim == "database" else _LOST_FIRST)
    with two.work(two.elm) as worker, two.mam(two.oak, "watch", "--all"):
        two.until(job_id, Status.RUNNING)
        if victim == "worker":
            worker.send(signal.SIGKILL)
            eventually(lambda: not two.processes_of(job_id, 1), "its agent is gone")
            with two.work(two.oak):
                job = two.until(job_id, Status.COMPLETED)
            assert two.claims(job_id) == [1, 2]
        else:
            two.database.kill()
            two.database.start()
            job = two.until(job_id, Status.COMPLETED)
            assert two.claims(job_id) == list(range(1, job.attempt + 1))
        assert job.status is Status.COMPLETED


@pytest.mark.release
@pytest.mark.parametrize("forever", [False, True], ids=["for 40 s", "for ever"])
def test_with_the_usual_settings_a_lost_host_costs_45_seconds(two: Farm, forever: bool) -> None:
    two.settle()
    jobs = [two.add(_LOST_FIRST) for _ in range(3)]
    with two.work(two.elm, "--slots", "3"):
        for job_id in jobs:
            two.until(job_id, Status.RUNNING)
        eventually(lambda: two.nodes().get("elm", {}).get("state") == "up", "its word")
        with two.work(two.oak, "--slots", "3"):
            cut = time.monotonic()
            two.elm.cut()
            if not forever:
                time.sleep(40)
                two.elm.heal()
            for job_id in jobs:
                come_back(two, job_id)
            assert time.monotonic() - cut < 50, "45 s, and a slow machine"
            state = "stale" if forever else "up"
            eventually(lambda: two.nodes()["elm"]["state"] == state, "its word, or its will", 90)
            for job_id in jobs:
                assert two.until(job_id, Status.COMPLETED).attempt == 2
                assert two.claims(job_id) == [1, 2]


@pytest.mark.release
def test_a_job_of_the_other_host_is_seen_and_led_from_here(two: Farm) -> None:
    """L: output, pane, question, why, answer, say and cancel, for a session in the other's tmux."""
    words = stand_in("two_way", RECORDING, "--input-format", "stream-json")
    two.settle(
        *("[agents.talks]", f"command = {json.dumps(words)}"),
        *('mode = "stream"', 'stream = "stream-json"'),
    )

    def told(*words: str, code: int = 0) -> str:
        done = two.ask(two.oak, *words)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    def asking() -> str:
        job_id = two.add("permission", "talks", "tmux:elms")
        eventually(lambda: two.asked(job_id), "it asks")
        return job_id

    # Before the first job: the registry is made by its worker.
    spawned = two.ask(two.elm, "spawn", "--agent-session", "tmux:elms", "--agent", "talks")
    assert spawned.returncode == 0, spawned.stderr
    try:
        job_id = asking()
        seen = eventually(lambda: two.told(two.oak, "output", job_id, "--screen"), "its pane")
        assert "stand-in agent: this one speaks both ways" in seen
        assert "control_request" in told("output", job_id)
        assert "elm says so itself, where it runs" in told("why", job_id)
        (question,) = json.loads(told("answer", job_id, "--json"))
        assert question["input"], "in full, as only the agent's own output has it"
        assert "its files are there" in told("diff", job_id, code=1)
        assert "took it" in told("answer", job_id, "y")
        two.until(job_id, Status.COMPLETED)
        node = two.nodes()["elm"]
        assert (node["state"], node["sessions"]) == ("up", ["tmux:elms"])
        assert abs(node["clock_offset"]) < 60, "both have one clock, and the database has it, too"
        endless = asking()
        assert "is on its way" in told("say", endless, "be quick", "--no-wait")
        assert "was asked to end it" in told("cancel", endless)
        two.until(endless, Status.CANCELLED)
        eventually(lambda: not two.processes_of(endless, 1), "its agent is gone")
        # Once its host is cut off, what is not known is said, and nothing of this host's is shown.
        last = asking()
        two.elm.cut()
        assert "elm does not answer" in told("output", last, code=1)
        assert "is unknown: elm does not answer" in told("why", last)
        two.elm.heal()
    finally:
        two.tmux(two.elm, "kill-server")


def test_a_drained_host_leaves_the_work_to_the_other(two: Farm) -> None:
    two.settle()
    with two.work(two.elm), two.work(two.oak):
        eventually(lambda: "elm" in two.nodes(), "its first word: a host nobody knows is refused")
        assert two.ask(two.oak, "node", "drain", "elm", "--why", "new disk").returncode == 0
        jobs = [two.add("true") for _ in range(3)]
        for job_id in jobs:
            assert two.until(job_id, Status.COMPLETED).node == "oak"
        # A worker may be done with a job before the broker has its first word.
        eventually(lambda: LABEL in two.nodes().get("oak", {}).get("sessions", ()), "its word")
