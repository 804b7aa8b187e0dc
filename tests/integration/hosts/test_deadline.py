"""A worker that is stopped, or whose database hangs: no two hosts run one job at once.

The agents say so themselves: each writes down when it was alive, by a clock that both hosts have.
They end for nothing but KILL.
"""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from mam_core.records import Status
from tests.integration.hosts.farm import LABEL, Farm, farm
from tests.support.forwarder import forwarder
from tests.support.patience import eventually
from tests.support.supervision import stand_in
from tests.support.terminal import Terminal, terminal
from tests.support.watching import MAM, Watched

pytestmark = pytest.mark.timeout(600)

_POOLER = "127.0.0.1:5433"
_WORK = ("work", "--label", LABEL, "--agents", "ticks")
_SAID = "its lease could not be renewed for"


class Way(StrEnum):
    """How a worker comes to be cut off without a cut."""

    HANGS = "the pooler hangs"
    STOPPED = "SIGSTOP"
    CTRL_Z = "ctrl+z"


class Gap(NamedTuple):
    """Between the last sign of life of a job's first attempt and the first one of its second."""

    job_id: str
    sec: float


class Stage:
    """elm reaches the database through a pooler; its workers are then cut off."""

    def __init__(self, two: Farm, folder: Path, up: ExitStack) -> None:
        self._two = two
        self._folder = folder
        self._ticks = folder / "ticks"
        self._ticks.mkdir()
        self._up = up
        self._shown: Terminal | None = None
        self._workers: dict[Way, Watched] = {}
        through = two.elm.command()
        self._pooler = up.enter_context(forwarder(_POOLER, f"{two.oak.address}:5432", through))

    def settle(self, lease_sec: float) -> None:
        words = json.dumps([*stand_in("ticks", self._ticks)])
        self._two.settle(
            *("[agents.ticks]", f"command = {words}", 'mode = "exec"'),
            heartbeat_sec=lease_sec / 3,
            lease_sec=lease_sec,
            sweep_sec=0.5,
            grace_sec=60.0,  # longer than anybody may wait for
        )
        place = self._two.home(self._two.elm) / "mam.toml"
        place.write_text(
            place.read_text().replace(f"{self._two.oak.address}/postgres", f"{_POOLER}/postgres")
        )

    def begin(self, way: Way, slots: int) -> None:
        words = [*_WORK, "--slots", str(slots)]
        if way is not Way.CTRL_Z:
            host = self._two.elm
            self._workers[way] = self._up.enter_context(self._two.mam(host, *words))
            return
        self._shown = self._up.enter_context(terminal(self._two.home(self._two.elm)))
        self._shown.run(shlex.join(self._two.elm.command(*MAM, *words)))

    def strike(self, way: Way) -> None:
        match way:
            case Way.HANGS:
                self._pooler.hang()
            case Way.STOPPED:
                self._workers[way].send(signal.SIGSTOP)
            case Way.CTRL_Z:
                assert self._shown is not None
                self._shown.press("C-z")
                self._shown.until("Stopped")

    def heal(self, way: Way) -> None:
        """Afterwards the worker says in one sentence what has happened."""
        match way:
            case Way.HANGS:
                self._pooler.go_on()
            case Way.STOPPED:
                self._workers[way].send(signal.SIGCONT)
            case Way.CTRL_Z:
                assert self._shown is not None
                self._shown.run("fg")
                self._shown.until(_SAID)
        if (worker := self._workers.get(way)) is not None:
            lines = (worker.out, worker.err)
            eventually(lambda: any(_SAID in line for each in lines for line in each), _SAID)

    def is_alive(self, job_id: str) -> bool:
        return bool(self._told(job_id, 1))

    def is_completed(self, job_id: str) -> bool:
        return self._two.job(job_id).status is Status.COMPLETED

    def gap(self, job_id: str) -> Gap:
        before, after = self._told(job_id, 1), self._told(job_id, 2)
        return Gap(job_id, (after[0] - before[-1]) / 1e9)

    def _told(self, job_id: str, attempt: int) -> list[int]:
        place = self._ticks / f"{job_id}.{attempt}"
        if not place.exists():
            return []
        return [int(line) for line in place.read_bytes().split(b"\n")[:-1]]


@contextmanager
def stage(folder: Path) -> Iterator[tuple[Farm, Stage]]:
    with farm(folder) as two, ExitStack() as up:
        yield two, Stage(two, folder, up)


def gaps(folder: Path, ways: list[Way], lease_sec: float, runs: int) -> list[Gap]:
    """Each way meets one worker of elm, which has that many jobs in hand; oak takes them up."""
    with stage(folder) as (two, here):
        here.settle(lease_sec)
        jobs = []
        for way in ways:
            here.begin(way, runs)
            mine = [two.add("tick", "ticks") for _ in range(runs)]
            for job_id in mine:
                eventually(partial(here.is_alive, job_id), f"{job_id} runs", 120)
            jobs += mine
        oak = two.oak
        with two.mam(oak, *_WORK, "--slots", str(len(jobs))):
            eventually(lambda: two.nodes().get("oak", {}).get("state") == "up", "it is there")
            for way in ways:
                here.strike(way)
            for job_id in jobs:
                eventually(partial(here.is_completed, job_id), f"{job_id} is run again", 180)
            for way in reversed(ways):
                here.heal(way)
            for job_id in jobs:
                assert (two.job(job_id).attempt, two.claims(job_id)) == (2, [1, 2])
        return [here.gap(job_id) for job_id in jobs]


def test_no_host_begins_before_the_other_has_ended(tmp_path: Path) -> None:
    for gap in gaps(tmp_path, list(Way), 2.0, 1):
        assert gap.sec > 0, gap


@pytest.mark.release
@pytest.mark.parametrize("lease_sec", [8.0, 30.0])
@pytest.mark.parametrize("way", Way)
def test_twenty_jobs_at_once(
    tmp_path: Path, way: Way, lease_sec: float, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = sorted(gap.sec for gap in gaps(tmp_path, [way], lease_sec, 20))
    with capsys.disabled():
        words = f"{seen[0]:.2f} to {seen[-1]:.2f} s between two hosts"
        print(f"\n{way}, a lease of {lease_sec:g} s: {len(seen)} jobs, {words}")
    assert seen[0] > 0
