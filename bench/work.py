"""The figures of running jobs: what a worker adds to a command, how many it gets through, and
how long a command that prints much is held up.

The command of a job does nothing, so that all of the time is ours: claim, prompt file,
supervisor, events, checks, end. What a start costs is the time from the claim until the
command itself says when it began, against the same command started directly. Goals in
milliseconds and in jobs a second stand as a yardstick of that length.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial

from bench.figures import Figure, Measure, Wrong
from bench.ground import Ground
from bench.rounds import Runner, less, run
from mam_core.agents.profiles import Profile
from mam_core.leases import LeaseTerms
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.wiring import open_registry
from mam_core.work.attempt import Attempt
from mam_core.work.hold import Terms
from mam_core.work.screen import Screen
from mam_core.work.worker import Stops, Until, Work, Worker

_LABEL = "bench"
_START_GOAL_SEC = 0.060
_JOBS_GOAL_PER_SEC = 5.0
_SLOTS = 4

_TELLS_TIME = (sys.executable, "-I", "-S", "-c", "import time; print(time.monotonic())")
_NOTHING = ("/bin/true",)
#: Prints as fast as its output is taken, and says at the end how long that took.
_PRINTS = """
import os, sys, time
lines = b"".join(b"line %d of a chatty build\\n" % number for number in range(3000))[:65536]
began = time.monotonic()
for _ in range(int(sys.argv[1])):
    left = memoryview(lines)
    while left:
        left = left[os.write(1, left):]
os.write(1, b"\\n%.6f" % (time.monotonic() - began))
"""
_BLOCKS_PER_MB = 16
_CHATTY_MB = 20
#: Its output into a file: the least that anybody can do with it.
_OUTPUT_GOAL = 10.0
#: As an agent does for most of its life: it waits for a model.
_WAITS = ("/bin/sleep", "0.2")


def start(ground: Ground) -> list[Figure]:
    path = ground.path("work-start")
    with open_registry(path) as registry:
        moments: list[float] = []

        def ours() -> int:
            began = time.monotonic()
            moments.append(_first_word(registry, path) - began)
            return 1

        def theirs() -> int:
            began = time.monotonic()
            done = subprocess.run(_TELLS_TIME, capture_output=True, check=True)
            direct.append(float(done.stdout) - began)
            return 1

        direct: list[float] = []
        register = partial(_register, registry, 1)
        run([Runner("ours", ours, register), Runner("theirs", theirs)], ground.effort.starts)
    over = less(moments, direct)
    goal = [_START_GOAL_SEC] * len(over)
    return [
        Figure("start", "start of a job, over its command", "60 ms", Measure.COST, over, goal, 1),
        Figure("start", "start of a job", "its command directly", Measure.COST, moments, direct),
    ]


def output(ground: Ground) -> list[Figure]:
    """How long a command takes to print, by its own clock: is it held up by who reads it?"""
    path = ground.path("work-output")
    megabytes = ground.effort.some(_CHATTY_MB)
    command = (sys.executable, "-I", "-S", "-c", _PRINTS, str(megabytes * _BLOCKS_PER_MB))
    with open_registry(path) as registry:
        into_file: list[float] = []
        into_job: list[float] = []

        def ours() -> int:
            into_job.append(float(_last_line(registry, path, command)) / megabytes)
            return 1

        def theirs() -> int:
            place = os.path.join(ground.root, "work-output-bare")
            with open(place, "wb") as file:
                subprocess.run(command, stdout=file, check=True)
            into_file.append(float(_tail(place)) / megabytes)
            os.unlink(place)
            return 1

        register = partial(_register, registry, 1)
        run([Runner("ours", ours, register), Runner("theirs", theirs)], ground.effort.rounds)
    what = f"printing {megabytes} MB of short lines"
    return [Figure("output", what, "into a file", Measure.COST, into_job, into_file, _OUTPUT_GOAL)]


def _first_word(registry: Registry, path: str) -> float:
    """One job, from its claim to its end; when its command began."""
    return float(_last_line(registry, path, _TELLS_TIME))


def _last_line(registry: Registry, path: str, command: tuple[str, ...]) -> str:
    """Of what a job's command printed; the job is run from its claim to its end."""
    lease = LeaseTerms("bench", 30.0)
    job = registry.claim(_LABEL, lease=lease)
    if job is None:
        raise Wrong("there is no job to claim")
    screen = Screen(io.StringIO())
    terms = Terms("bench", path)
    profile = Profile("bench", command)
    ended = Attempt(registry, job, profile, terms, screen, lambda: False).run()
    if ended is None or ended.status is not Status.COMPLETED:
        raise Wrong(f"job {job.job_id} did not complete: {ended}")
    log = os.path.join(registry.store.audit.path, job.job_id, "attempts", "1", "output.log")
    return _tail(log)


def _tail(path: str) -> str:
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 64))
        return file.read().decode("ascii").splitlines()[-1]


def jobs(ground: Ground) -> list[Figure]:
    count = ground.effort.jobs
    figures = []
    for name, command in (("do nothing", _NOTHING), ("wait 0.2 s", _WAITS)):
        path = ground.path(f"work-{name.split()[0]}")
        with open_registry(path) as registry:
            register = partial(_register, registry, count)
            sides = [
                Runner(f"{slots}", partial(_drain, registry, path, command, slots, count), register)
                for slots in (1, _SLOTS)
            ]
            samples = run(sides, ground.effort.worker_rounds)
        one, many = samples["1"], samples[f"{_SLOTS}"]
        what = f"{count} jobs that {name}"
        goal = [1 / _JOBS_GOAL_PER_SEC] * len(one)
        if command is _NOTHING:
            figures.append(
                Figure("jobs", f"{what}, one slot", "5 a second", Measure.SPEED, one, goal, 1)
            )
        figures.append(
            Figure("jobs", f"{what}, {_SLOTS} slots", "one slot", Measure.SPEED, many, one, 2.5)
        )
    return figures


def _drain(registry: Registry, path: str, command: tuple[str, ...], slots: int, count: int) -> int:
    work = Work(_LABEL, ("bench",), slots, Until.DRAINED, 10.0, 30.0, 5.0, path)
    profile = Profile("bench", command)
    opened = partial(open_registry, path)
    worker = Worker(work, opened, lambda _: profile, Screen(io.StringIO()), Stops())
    worker.run()
    left = registry.store.find(Query(statuses=frozenset({Status.PENDING, Status.RUNNING})))[0]
    if worker.ran != count or worker.failed or left:
        raise Wrong(f"{worker.ran} of {count} jobs ran, {worker.failed} failed")
    return count


def _register(registry: Registry, count: int) -> None:
    request = {"prompt": "x", "agent": "bench", "agent_session": _LABEL, "workdir": "/"}
    registry.register([request] * count)


FIGURES: Mapping[str, Callable[[Ground], list[Figure]]] = {
    "start": start,
    "output": output,
    "jobs": jobs,
}
