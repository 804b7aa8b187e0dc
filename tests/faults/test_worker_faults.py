"""Workers, supervisors and agents are killed and stopped at random: nothing runs twice, nothing
survives, nothing is stuck.

That no attempt begins while something of another lives is witnessed by a lock which every
process of an agent holds, and which nobody but the kernel releases.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from mam_core.records import Status
from mam_core.stores.base import Query
from mam_core.summaries import Summary
from tests.faults.conftest import Figures
from tests.support.patience import eventually
from tests.support.supervision import end_surely, with_word
from tests.support.watching import Watched
from tests.support.working import Workshop, workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

_WORKERS = 2
_SLOTS = 2
_LEASE_SEC = 1.0
#: A stopped one sleeps through its lease, or nearly so.
_NAP_SEC = (0.1, 2.0)
#: What is left when the last kill was made has its time.
_SETTLE_SEC = 90.0


class Chaos:
    """Picks a victim, again and again."""

    def __init__(self, shop: Workshop, stack: ExitStack, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self._shop = shop
        self._stack = stack
        self._chance = random.Random(seed)
        self._timers: list[threading.Timer] = []
        self.workers = [self._start() for _ in range(_WORKERS)]

    def _start(self) -> Watched:
        words = ("--slots", str(_SLOTS))
        return self._stack.enter_context(self._shop.mam_work(*words))

    def strike(self) -> None:
        victim = self._chance.choice(("worker", "supervisor", "agent"))
        deed = self._chance.choice((signal.SIGKILL, signal.SIGSTOP))
        at = self._chance.randrange(_WORKERS)
        if victim == "worker":
            pid = self.workers[at].process.pid
        elif victim == "supervisor":
            pid = self._any([process.pid for process in self._shop.supervisors()])
        else:
            pid = self._any(with_word(self._shop.word))
        if not pid:
            return
        end_surely(pid, deed)
        self.counts[f"{victim} {'killed' if deed == signal.SIGKILL else 'stopped'}"] += 1
        if deed == signal.SIGSTOP:
            self._wake_later(pid)
        elif victim == "worker":
            self.workers[at].code()
            self.workers[at] = self._start()

    def _any(self, pids: list[int]) -> int:
        return self._chance.choice(pids) if pids else 0

    def _wake_later(self, pid: int) -> None:
        """In a thread: it may be stopped with the registry's lock, for which we wait ourselves."""
        pause = self._chance.uniform(*_NAP_SEC)
        timer = threading.Timer(pause, end_surely, (pid, signal.SIGCONT))
        timer.start()
        self._timers = [one for one in (*self._timers, timer) if one.is_alive()]

    def end(self) -> None:
        for timer in self._timers:
            timer.join()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    with workshop(tmp_path) as made:
        made.set(lease_sec=_LEASE_SEC, heartbeat_sec=_LEASE_SEC / 3, sweep_sec=0.3, grace_sec=0.2)
        yield made


def _live(shop: Workshop) -> list[Summary]:
    found = shop.registry.store.find(Query())[0]
    return [job for job in found if job.status.is_live]


def _play(shop: Workshop, seconds: float, seed: int) -> Counter[str]:
    place = shop.folder / "locks"
    place.mkdir()
    agent = shop.agent("overlaps", "overlaps", place, 1.5)
    with ExitStack() as stack:
        chaos = Chaos(shop, stack, seed)
        chance = random.Random(seed)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            while len(_live(shop)) < _WORKERS * _SLOTS + 2:
                shop.add(agent, idle_timeout_sec=5)
            chaos.strike()
            time.sleep(chance.uniform(0.02, 0.3))
        chaos.end()
        eventually(lambda: not _live(shop), f"nothing is stuck: {_live(shop)}", timeout=_SETTLE_SEC)
        shop.until_nobody_lives()
        for worker in chaos.workers:
            worker.send(signal.SIGTERM)
        for worker in chaos.workers:
            worker.code()
    counts = chaos.counts
    doubles = place / "doubles"
    assert not doubles.exists(), doubles.read_text()
    for job in shop.registry.store.find(Query())[0]:
        _check_history(shop, job, counts)
    with suppress(psutil.Error):
        assert not shop.supervisors()
    return counts


def _check_history(shop: Workshop, job: Summary, counts: Counter[str]) -> None:
    """Every attempt was claimed once and ended once, and the last end is the job's."""
    moves = [(m["attempt"], m["from"], m["to"]) for m in shop.audit(job.job_id, "status_changed")]
    begun = [attempt for attempt, _, to in moves if to == Status.RUNNING]
    over = [attempt for attempt, before, _ in moves if before == Status.RUNNING]
    assert begun == list(range(1, job.attempt + 1)), moves
    assert over == begun, moves
    assert moves[-1][2] == job.status, moves
    counts["jobs"] += 1
    counts["attempts"] += job.attempt
    counts[str(job.status)] += 1


def test_nothing_runs_twice_survives_or_is_stuck(shop: Workshop, show_figures: Figures) -> None:
    """Issue 5: 0 doubles, 0 survivors, 0 stuck."""
    counts = _play(shop, seconds=10, seed=5)
    assert counts["attempts"] >= 5
    show_figures("workers", counts)


@pytest.mark.release
@pytest.mark.timeout(1200)
def test_for_ten_minutes(shop: Workshop, show_figures: Figures) -> None:
    show_figures("workers", _play(shop, seconds=600, seed=random.randrange(1 << 30)))


def _play_with_drains(shop: Workshop, kills: int, seed: int) -> Counter[str]:
    """Nothing but workers that end by themselves, one after the other, as cron starts them."""
    place = shop.folder / "locks"
    place.mkdir()
    agent = shop.agent("overlaps", "overlaps", place, 0.4)
    chance, counts = random.Random(seed), Counter[str]()
    while counts["kills"] < kills:
        while len(_live(shop)) < 3:
            shop.add(agent, max_attempts=1000)  # or it would be lost for good three times later
        counts["runs"] += 1
        with shop.mam_work("--drain", "--slots", str(_SLOTS)) as run:
            if chance.random() < 0.7:
                run.until(partial(_has_ended_or_works, run, shop), "it runs a job, or has ended")
            time.sleep(chance.uniform(0.0, 0.8))
            if run.process.poll() is None:
                run.send(signal.SIGKILL)
                run.process.wait()
                counts["kills"] += 1
            else:
                assert run.code() == 0, run.err
    eventually(lambda: not _held(shop), "what the last one held is over")
    with shop.mam_work("--drain") as last:
        assert last.code() == 0, last.err
    assert not _live(shop), "one run takes up all that was left"
    shop.until_nobody_lives()
    assert not (place / "doubles").exists(), (place / "doubles").read_text()
    for job in shop.registry.store.find(Query())[0]:
        _check_history(shop, job, counts)
    assert counts["jobs"] == counts[str(Status.COMPLETED)]
    return counts


def _has_ended_or_works(run: Watched, shop: Workshop) -> bool:
    pids = {shop.job(job.job_id).pid for job in _live(shop)}
    return run.process.pid in pids or run.process.poll() is not None


def _held(shop: Workshop) -> list[str]:
    """The jobs whose lease may still be renewed."""
    leases = ((job.job_id, shop.job(job.job_id).lease) for job in _live(shop))
    return [job_id for job_id, lease in leases if lease and not shop.registry.lease_expired(lease)]


@pytest.fixture
def without_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers: a broker would be started for each run, and news is no part of this."""
    monkeypatch.setenv("MQTT_BROKER", "127.0.0.1")
    monkeypatch.setenv("MQTT_PORT", "1")


@pytest.mark.usefixtures("without_broker")
def test_workers_that_end_by_themselves_bring_all_jobs_back(
    shop: Workshop, show_figures: Figures
) -> None:
    """0 stuck, 0 lost, 0 doubled, with nobody there who lives long."""
    show_figures("drains", _play_with_drains(shop, kills=10, seed=7))


@pytest.mark.release
@pytest.mark.timeout(2400)
@pytest.mark.usefixtures("without_broker")
def test_three_hundred_kills_of_such_workers(shop: Workshop, show_figures: Figures) -> None:
    show_figures("drains", _play_with_drains(shop, kills=300, seed=random.randrange(1 << 30)))
