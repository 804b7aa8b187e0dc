"""Worker, supervisor and agent, each killed and stopped at random, over and over.

After every round one thing must be so: what is left is found and ended, and is
then known to be gone; and processes that have nothing to do with it were not touched.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from mam_core.disk import Folder
from mam_core.work.marks import AttemptMark, end_leftovers, is_gone
from mam_core.work.orders import Isolation
from tests.faults.figures import line
from tests.support.supervision import Stage, end_surely, stage, start_worker, strangers

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

_BLOWS = (signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT)


def marked(folder: Path) -> AttemptMark | None:
    with Folder.open(str(folder)) as opened:
        return AttemptMark.read(opened)


class Round:
    """One attempt, mishandled."""

    def __init__(self, here: Stage, chance: random.Random, counts: Counter[str]) -> None:
        self.here = here
        self.chance = chance
        self.counts = counts
        self.folder = here.folder / f"round-{counts['rounds']}"
        self.folder.mkdir()

    def play(self) -> None:
        way = self.chance.choice((Isolation.AUTO, Isolation.OFF))
        worker = start_worker(self.folder, self.here.word, way)
        try:
            self._let_run()
            for _ in range(self.chance.randint(1, 4)):
                self._strike(worker.pid)
                time.sleep(self.chance.random() * 0.1)
        finally:
            worker.kill()  # a job is only swept when its worker's lease has passed
            worker.communicate()
        self._sweep()

    def _let_run(self) -> None:
        """Mostly until all five are there; sometimes into the middle of the start."""
        deadline = time.monotonic() + (0.5 * self.chance.random() if self._seldom() else 30)
        output = self.folder / "output"
        while time.monotonic() < deadline:
            if output.exists() and b"ready" in output.read_bytes():
                return
            time.sleep(0.005)

    def _seldom(self) -> bool:
        return self.chance.random() < 0.3

    def _strike(self, worker: int) -> None:
        mark = marked(self.folder)
        targets = {"worker": [worker], "agent": self.here.survivors()}
        if mark is not None:
            targets["supervisor"] = [mark.supervisor.pid] if mark.supervisor.is_alive else []
        name = self.chance.choice(sorted(targets))
        if targets[name]:
            blow = self.chance.choice(_BLOWS)
            end_surely(self.chance.choice(targets[name]), blow)
            self.counts[f"{blow.name[3:].lower()} {name}"] += 1

    def _sweep(self) -> None:
        mark = marked(self.folder)
        if mark is None:
            self.counts["before the mark"] += 1
        elif is_gone(mark) is not True:
            self.counts["ended by a sweep"] += bool(end_leftovers(mark, 0.2))
        if mark is not None:
            assert is_gone(mark) is True
        assert self.here.survivors() == []


@pytest.mark.parametrize(
    ("rounds", "seconds"),
    [
        (15, 60),
        pytest.param(
            1_000_000, 600, marks=[pytest.mark.release, pytest.mark.timeout(1200)], id="release"
        ),
    ],
)
def test_random_blows_leave_no_survivor_and_hit_no_stranger(
    tmp_path: Path,
    rounds: int,
    seconds: float,
    capfd: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    """Faults 3, 39, 40, 41; promise 5. Bounded in rounds and in time, whichever comes first."""
    chance = random.Random(20260619)
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    with stage(tmp_path) as here, strangers(tmp_path, 3) as others:
        while counts["rounds"] < rounds and time.monotonic() < end:
            Round(here, chance, counts).play()
            counts["rounds"] += 1
            assert all(stranger.is_untouched for stranger in others)
    figures = {"rounds": counts.pop("rounds"), **counts, "survivors": 0, "strangers hit": 0}
    record_property("supervisor soak", figures)
    with capfd.disabled():
        sys.stderr.write(f"\n{line('supervisor soak', figures)}\n")
