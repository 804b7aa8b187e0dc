"""The figures of the feed: how soon an event is told, a burst of changes, and what idling costs.

Messages come from a process of their own, which numbers each event in the
registry before it sends it, as a publisher does; their age is read from the
clock that all processes share. The yardstick is a bare client in our place.
"""

from __future__ import annotations

import json
import os
import queue
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from bench.figures import Figure, Measure, Wrong
from bench.ground import Ground
from bench.rounds import Runner, in_turn, run
from mam_core import codec
from mam_core.config import load
from mam_core.disk import Folder
from mam_core.events.feed import EventHeard, Feed, JobChanged
from mam_core.records import Job, Status
from mam_core.stores.base import Query
from mam_core.stores.catalogue import record_name
from mam_core.wiring import client_for, embedded_broker, open_registry

_MESSAGES = 100
_EVERY_SEC = 0.01
_IDLE_SEC = 45.0
_PATIENCE_SEC = 60.0

_SPEAKER = os.path.join(os.path.dirname(__file__), "speaker.py")


def latency(ground: Ground) -> list[Figure]:
    """The 95th percentile, from `publish` in one process to the item in another."""
    ours: list[float] = []
    theirs: list[float] = []
    count = ground.effort.some(_MESSAGES)
    with _station(ground) as path, _speaker(path) as speaker:
        jobs = _some_jobs(path, 10)
        # Each has the process to itself: a feed that only listens would slow the other side.
        sides = {
            "feed": lambda: _ages_by_feed(path, speaker, jobs, count),
            "bare": lambda: _ages_by_client(path, speaker, jobs, count),
        }
        results = {"feed": ours, "bare": theirs}
        for turn in range(ground.effort.rounds):
            for name in in_turn(list(sides), turn):
                results[name].append(_p95(sides[name]()))
    what = f"publish to feed item with {ground.effort.pending:,} jobs, 95th percentile"
    return [Figure("latency", what, "bare client", Measure.COST, ours, theirs, 3)]


def burst(ground: Ground) -> list[Figure]:
    """Files replaced as fast as they can be, and all of them seen."""
    path, count = ground.crowded, ground.effort.claimable
    with open_registry(path) as registry, _listening(path, broker=False) as feed:
        ids = _some_jobs(path, count)
        jobs = [registry.get(job_id) for job_id in ids]
        turn = 0

        def change() -> int:
            nonlocal turn
            turn += 1
            for job in jobs:
                replace(path, job.evolve(priority=-turn))
            seen: dict[str, int] = {}
            deadline = time.monotonic() + _PATIENCE_SEC
            while sum(priority == -turn for priority in seen.values()) < count:
                if time.monotonic() > deadline:
                    raise Wrong(f"of {count} changes {len(seen)} were seen")
                for item in feed.take(1):
                    if isinstance(item, JobChanged) and isinstance(item.job, Job):
                        seen[item.job_id] = item.job.priority
            return count

        def bare() -> int:
            for job in jobs:
                replace(path, job)
                registry.get(job.job_id)
            feed.take(1)
            return count

        samples = run([Runner("feed", change), Runner("bare", bare)], ground.effort.rounds)
    what = f"{count:,} files replaced in a burst until all are told, each"
    against = "replacing and reading them"
    return [Figure("burst", what, against, Measure.COST, samples["feed"], samples["bare"])]


def idle(ground: Ground) -> list[Figure]:
    """A process with an idle feed: watch, subscription and slow looks at everything."""
    seconds = ground.effort.seconds(_IDLE_SEC)
    with _station(ground) as path:
        program = (
            "import sys, time; from mam_core.config import load;"
            "from mam_core.events.feed import Feed;"
            "from mam_core.wiring import client_for, open_registry;"
            "path = sys.argv[1]; config = load();"
            "feed = Feed(open_registry(path), registry_path=path,"
            " connect=lambda: client_for(path, config)).__enter__();"
            "began = time.monotonic();\n"
            "while not feed.state.broker_up: time.sleep(0.1)\n"
            "time.sleep(3); feed.take(0)\n"
            "cpu, began = time.process_time(), time.monotonic()\n"
            "feed.take(float(sys.argv[2]))\n"
            "print(time.process_time() - cpu, time.monotonic() - began)\n"
            "feed.close()"
        )
        command = [sys.executable, "-c", program, path, str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Wrong(f"the idle feed ended with {done.returncode}: {done.stderr[-300:]}")
        cpu, wall = map(float, done.stdout.split())
    if wall < seconds / 2:
        raise Wrong("the feed was not idle: something was told")
    what = f"idle feed with {ground.effort.pending:,} jobs, CPU"
    return [Figure("idle", what, "one core", Measure.COST, [cpu], [wall], 0.02)]


FIGURES: Mapping[str, Callable[[Ground], list[Figure]]] = {
    "latency": latency,
    "burst": burst,
    "idle": idle,
}


# -- parts -----------------------------------------------------------------------------------


@contextmanager
def _station(ground: Ground) -> Iterator[str]:
    """The crowded registry with its embedded broker."""
    path = ground.crowded
    with embedded_broker(path).ensure_running():
        yield path


@contextmanager
def _listening(path: str, *, broker: bool = True) -> Iterator[Feed]:
    config = load()
    connect = (lambda: client_for(path, config)) if broker else None
    with (
        open_registry(path) as registry,
        Feed(registry, registry_path=path, connect=connect) as feed,
    ):
        deadline = time.monotonic() + _PATIENCE_SEC
        while broker and not feed.state.broker_up:
            feed.take(0.1)
            if time.monotonic() > deadline:
                raise Wrong(f"the feed does not reach the broker: {feed.state.broker_text}")
        feed.take(1)
        yield feed


@contextmanager
def _speaker(path: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, _SPEAKER, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            _answer(process)
            yield process
        finally:
            process.kill()


def _speak(process: subprocess.Popen[str], jobs: list[str], count: int) -> None:
    line = json.dumps({"jobs": jobs, "messages": count, "every": _EVERY_SEC})
    stream: IO[str] | None = process.stdin
    assert stream is not None
    stream.write(line + "\n")
    stream.flush()


def _answer(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    if process.stdout.readline().strip() != "ready":
        raise Wrong("the process that publishes has ended")


def _ages_by_feed(
    path: str, speaker: subprocess.Popen[str], jobs: list[str], count: int
) -> list[float]:
    ages: list[float] = []
    with _listening(path) as feed:
        _speak(speaker, jobs, count)
        deadline = time.monotonic() + _PATIENCE_SEC
        while len(ages) < count:
            items = feed.take(1)
            now = time.monotonic()
            heard = [item for item in items if isinstance(item, EventHeard)]
            ages += [now - one.event.data["sent"] for one in heard]
            if now > deadline:
                raise Wrong(f"of {count} events {len(ages)} were told")
        _answer(speaker)
    return ages


def _ages_by_client(
    path: str, speaker: subprocess.Popen[str], jobs: list[str], count: int
) -> list[float]:
    ages: queue.SimpleQueue[float] = queue.SimpleQueue()
    granted: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def heard(_: object, __: object, message: Any) -> None:
        now = time.monotonic()
        ages.put(now - json.loads(message.payload)["data"]["sent"])

    client = client_for(path, load())
    client.on_subscribe = lambda *_: granted.put(True)
    client.on_message = heard
    client.reach()
    try:
        client.subscribe("python/mqtt/jobs/+/events", qos=1)
        granted.get(timeout=_PATIENCE_SEC)
        _speak(speaker, jobs, count)
        got = [ages.get(timeout=_PATIENCE_SEC) for _ in range(count)]
        _answer(speaker)
    finally:
        client.stop()
    return got


def _some_jobs(path: str, count: int) -> list[str]:
    with open_registry(path) as registry:
        found, _ = registry.store.find(Query(statuses=frozenset({Status.PENDING})))
    return [row.job_id for row in found[:count]]


def replace(path: str, job: Job) -> None:
    """As another tool would: no lock, no sync."""
    with Folder.open(path) as folder:
        folder.write(record_name(job.job_id), codec.encode_job(job))


def _p95(ages: list[float]) -> float:
    return statistics.quantiles(ages, n=20)[-1]
