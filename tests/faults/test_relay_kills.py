"""Publishers and relays die at any moment: no number is missing, none is told twice.

Real processes, a real broker, kill -9. What a publisher acknowledged is told;
what it did not, is told whole or not at all.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.config import load
from mam_core.operations.relay import new_relay
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from tests.faults.conftest import Figures
from tests.faults.small_disk import CannotMount, small_disk
from tests.support.brokers import embedded, kill_server, nothing_left
from tests.support.children import Child
from tests.support.jobs import add
from tests.support.patience import PATIENCE_SEC
from tests.support.relays import PUBLISHER, RELAY, published, relay_in_thread, until_empty, waiting

EVENTS = 400  #: more than a publisher gets to tell


@pytest.fixture
def home(place: Path) -> Iterator[Path]:
    with nothing_left(place):
        yield place / "jobs"


def drained(registry: Registry, home: Path) -> None:
    relay = new_relay(registry, str(home), load())
    left = relay.drain(threading.Event(), patience_sec=2 * PATIENCE_SEC)
    assert left is not None
    assert left.posts == 0, left


def check(registry: Registry, job_id: str, acknowledged: set[int]) -> None:
    """Every number from 1 to the last, once and in order; and every word that was given is kept."""
    told = published(registry, job_id)
    last = registry.get(job_id).last_seq
    assert told == list(range(1, last + 1))
    assert acknowledged <= set(told)


@pytest.mark.parametrize(
    "rounds", [12, pytest.param(200, marks=[pytest.mark.release, pytest.mark.timeout(1800)])]
)
def test_kills_at_random_moments_lose_no_event_and_double_none(
    rounds: int, home: Path, show_figures: Figures
) -> None:
    """G3, promise 2: publisher, relay and now and then the broker, killed with -9."""
    seed = random.randrange(10**6)
    dice = random.Random(seed)
    acknowledged: dict[str, set[int]] = {}
    kills = {"publishers": 0, "relays": 0, "brokers": 0}
    with embedded(home, "nats").ensure_running(), open_registry(str(home)) as registry:
        jobs = [add(registry, f"part {n}") for n in range(2)]
        acknowledged = {job_id: set() for job_id in jobs}
        for turn in range(rounds):
            publishers = [Child(PUBLISHER, str(home), job_id, str(EVENTS)) for job_id in jobs]
            relay = Child(RELAY, str(home))
            try:
                for child in (*publishers, relay):
                    assert child.hear() == "ready"
                for child in publishers:
                    child.tell()
                if turn % 3:  # on a busy machine the pause alone may see nothing happen
                    for job_id, child in zip(jobs, publishers, strict=True):
                        acknowledged[job_id].add(int(child.hear()))
                time.sleep(dice.uniform(0, 0.3))
                if turn % 4 == 3:
                    kill_server(home)
                    kills["brokers"] += 1
                for child in dice.sample([*publishers, relay], 3):
                    child.process.kill()
                    time.sleep(dice.uniform(0, 0.05))
                kills["publishers"] += 2
                kills["relays"] += 1
                for job_id, child in zip(jobs, publishers, strict=True):
                    assert child.process.stdout is not None
                    words = child.process.stdout.read().split("\n")[:-1]  # whole lines only
                    acknowledged[job_id] |= {int(word) for word in words}
            finally:
                for child in (*publishers, relay):
                    child.end()
        drained(registry, home)
        for job_id in jobs:
            check(registry, job_id, acknowledged[job_id])
        assert waiting(registry) == []
        events = sum(map(len, acknowledged.values()))
        show_figures(f"relay kills (seed {seed})", {**kills, "events": events})
        assert events > rounds, "hardly anything was published: the kills have hit nothing"


def test_a_relay_killed_again_and_again_gets_there_in_the_end(home: Path) -> None:
    """Only the relay dies, in the middle of a backlog: each goes on where the last one stopped."""
    with embedded(home, "nats").ensure_running(), open_registry(str(home)) as registry:
        job_id = add(registry)
        for _ in range(300):
            registry.publish(job_id, "progress")
        for _ in range(4):
            relay = Child(RELAY, str(home))
            try:
                assert relay.hear() == "ready"
                before = len(waiting(registry))
                deadline = time.monotonic() + PATIENCE_SEC
                while before and len(waiting(registry)) == before:
                    assert time.monotonic() < deadline, "the relay does nothing"
            finally:
                relay.end()
        drained(registry, home)
        check(registry, job_id, set(range(1, 301)))


def test_a_full_disk_delays_history_and_loses_no_event(tmp_path: Path) -> None:
    """The relay lives on, and tells what it owes when there is room again."""
    try:
        with (
            small_disk("size=3m") as disk,
            embedded(tmp_path / "other", "mosquitto").ensure_running() as keeper,
        ):
            _fill_up(disk, keeper.port, keeper.login)
    except CannotMount as problem:
        pytest.skip(str(problem))


def _fill_up(disk: Path, port: int, login: object) -> None:
    from mam_core.events.embedded import Login, Role

    assert callable(login)
    operator: Login = login(Role.OPERATOR)
    home = disk / "jobs"
    with open_registry(str(home)) as registry:
        there = {"host": "127.0.0.1", "port": port, **operator._asdict()}
        job_id = add(registry, broker=there)
        for _ in range(20):
            registry.publish(job_id, "progress", detail="x" * 500)
        ballast = disk / "ballast"
        with relay_in_thread(home), ballast.open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096) == 4096:
                    pass
            except OSError:
                pass
            registry.store.outbox.ring()
            time.sleep(0.3)  # it tries every 20 ms
            ballast.unlink()
            file.truncate(0)
            until_empty(registry)
            registry.publish(job_id, "progress")
            registry.store.outbox.ring()
            until_empty(registry)
        check(registry, job_id, set(range(1, 22)))
