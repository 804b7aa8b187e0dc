"""The figures of the dispatch registry: what its size costs, and what a second dispatcher brings.

A claim is one task of the file, from the lock to the rename; with its job, as a dispatcher
makes it. A merge is a sync of two copies in which as many tasks differ, whatever their
size. Tasks that sleep stand for agents that wait for their model.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from bench.figures import Figure, Measure, Wrong
from bench.ground import Ground
from bench.rounds import Runner, Samples, run
from mam_core.dispatch import tasks
from mam_core.dispatch.errand import Errand
from mam_core.dispatch.layout import Sheet, Whole, compose, parse
from mam_core.dispatch.merge import merge_sheets
from mam_core.dispatch.sync import remote_at
from mam_core.dispatch.tasks import Task, TaskStatus
from mam_core.dispatch.tasks_file import TasksFile
from mam_core.registry import Registry
from mam_core.wiring import open_registry

_TIMES = 2.0
_DIFFERING = 20
_SLEEP_SEC = 1
_SLOTS = 4
_FASTER = 1.6
#: Fewer tasks than this may all go to one node.
_ENOUGH_FOR_ALL = 60

_SETTINGS = f"""\
[agents.claude-code]
command = ["/bin/sh"]
mode = "exec"
stream = "plain"
[defaults]
idle_timeout_sec = {60 * _SLEEP_SEC}
"""


def claim(ground: Ground) -> list[Figure]:
    figures = []
    for what, make in (("claim a task", _claims), ("claim a task and make its job", _jobs)):
        runners = [
            Runner(str(size), partial(_all_of, make(ground, size), ground.effort.few_claims))
            for size in _sizes(ground)
        ]
        samples = run(runners, ground.effort.rounds)
        figures.append(_figure("claim", what, ground, samples))
    return figures


def merge(ground: Ground) -> list[Figure]:
    runners = []
    few, many = _sizes(ground)
    for size in (few, many):
        ours, theirs = (
            _written(ground.path(f"dispatch-{side}-{size}"), size) for side in ("ours", "theirs")
        )
        runners.append(
            Runner(str(size), partial(_synced, ours, theirs), partial(_differ, ours, theirs, size))
        )
    samples = run(runners, ground.effort.rounds)
    what = f"sync two copies, {2 * _DIFFERING} tasks differ"
    figures = [_figure("merge", what, ground, samples)]
    # Read beside it: what it would cost to read every task, as where all of them differ.
    runners = [
        Runner(str(size), partial(_all_differ, *_sheets(size)), lambda: None)
        for size in (few, many)
    ]
    samples = run(runners, ground.effort.scan_rounds)
    return [
        *figures,
        Figure(
            "merge",
            f"merge {many:,} tasks that all differ, in memory",
            f"{few:,} of them",
            Measure.COST,
            samples[str(many)],
            samples[str(few)],
        ),
    ]


def dispatchers(ground: Ground) -> list[Figure]:
    """One round: so many tasks take minutes."""
    count = ground.effort.tasks
    took = {
        number: [_dispatched(ground.path(f"dispatchers-{number}"), number, count) / count]
        for number in (2, 1)
    }
    return [
        Figure(
            "dispatchers",
            f"{count:,} tasks that sleep {_SLEEP_SEC} s, two dispatchers of {_SLOTS} slots",
            "one dispatcher",
            Measure.SPEED,
            took[2],
            took[1],
            _FASTER,
        )
    ]


def _sizes(ground: Ground) -> tuple[int, int]:
    return ground.effort.claimable, ground.effort.pending


def _figure(name: str, what: str, ground: Ground, samples: Samples) -> Figure:
    few, many = _sizes(ground)
    ours, theirs = samples[str(many)], samples[str(few)]
    return Figure(name, f"{what}, of {many:,}", f"of {few:,}", Measure.COST, ours, theirs, _TIMES)


# -- one file ------------------------------------------------------------------------------------


def _written(folder: str, size: int) -> TasksFile:
    os.makedirs(folder, exist_ok=True)
    file = TasksFile(os.path.join(folder, "dispatch-registry.json"))
    pending = {
        f"S{n:05}": Task(TaskStatus.PENDING, spec=f"S{n:05}-what-is-to-be-done.md")
        for n in range(size)
    }
    with file.changing(create=True) as draft:
        draft.replace(compose(Whole({"specs_dir": folder}, pending)))
    return file


def _spread(size: int) -> Iterator[str]:
    """Names from all over the file."""
    number = 0
    while True:
        number = (number + 617) % size
        yield f"S{number:05}"


def _claims(ground: Ground, size: int) -> Callable[[], None]:
    file, names = _written(ground.path(f"dispatch-claim-{size}"), size), _spread(size)

    def one() -> None:
        name = next(names)
        with file.changing() as draft:
            task = draft.get(name)
            if task is None or tasks.refusal(name, task):
                raise Wrong(f"task {name} cannot be claimed: {task}")
            draft.put(name, tasks.claimed(task, "bench", 1, "job", time.time()))

    return one


def _jobs(ground: Ground, size: int) -> Callable[[], None]:
    folder = ground.path(f"dispatch-job-{size}")
    file, names = _written(folder, size), _spread(size)
    registry: Registry = open_registry(os.path.join(folder, "jobs"))
    request = {"agent": "bench", "agent_session": "bench", "workdir": folder}
    errand = Errand(file, "bench", folder, request, patience_sec=0, written=lambda: None)

    def one() -> None:
        name = next(names)
        with open(os.path.join(folder, f"{name}-what-is-to-be-done.md"), "w") as spec:
            spec.write("do it")
        errand.add([name])
        if not errand.take(registry):
            raise Wrong(f"task {name} was not taken: {errand.left_out or errand.skipped}")

    return one


def _all_of(one: Callable[[], None], count: int) -> int:
    for _ in range(count):
        one()
    return count


# -- two copies ----------------------------------------------------------------------------------


def _differ(ours: TasksFile, theirs: TasksFile, size: int) -> None:
    step = size // (2 * _DIFFERING)
    for file, first in ((ours, 0), (theirs, step // 2)):
        with file.changing() as draft:
            for number in range(_DIFFERING):
                name = f"S{2 * number * step + first:05}"
                task = draft.get(name)
                assert task is not None
                draft.put(name, tasks.claimed(task, "bench", 1, "job", time.time()))


def _synced(ours: TasksFile, theirs: TasksFile) -> int:
    done = remote_at(theirs.path).sync(ours, 60.0)
    if done != (_DIFFERING, _DIFFERING):
        raise Wrong(f"{2 * _DIFFERING} tasks differed: {done}")
    return 1


def _sheets(size: int) -> tuple[Sheet, Sheet]:
    names = [f"S{n:05}" for n in range(size)]
    sides = (
        {name: tasks.claimed(Task(TaskStatus.PENDING), node, 1, "job", 1e9) for name in names}
        for node in ("mac1", "mac2")
    )
    one, other = (Sheet(compose(Whole({}, side))) for side in sides)
    return one, other


def _all_differ(one: Sheet, other: Sheet) -> int:
    if not merge_sheets(one, other).pulled:
        raise Wrong("nothing differed")
    return 1


# -- dispatchers ---------------------------------------------------------------------------------


def _dispatched(folder: str, number: int, count: int) -> float:
    """Seconds, from the first start to the last end; every task must have run once."""
    specs = os.path.join(folder, "specs")
    os.makedirs(specs)
    done = os.path.join(folder, "done")
    for task in range(count):
        with open(os.path.join(specs, f"S{task:04}.md"), "w") as spec:
            spec.write(f"sleep {_SLEEP_SEC}; echo S{task:04} >> {done}\n")
    mam = [sys.executable, "-m", "mam_core.cli.main", "dispatch"]
    environ = {**os.environ, "REGISTRY": os.path.join(folder, "dispatch-registry.json")}
    subprocess.run([*mam, "init", specs], env=environ, check=True, capture_output=True)
    began = time.monotonic()
    started = [_dispatcher(mam, os.path.join(folder, f"node{n}"), environ) for n in range(number)]
    for process in started:
        process.wait()
    took = time.monotonic() - began
    _check(environ["REGISTRY"], done, count, number)
    return took


def _dispatcher(mam: list[str], home: str, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    os.makedirs(home)
    with open(os.path.join(home, "mam.toml"), "w") as settings:
        settings.write(_SETTINGS)
    return subprocess.Popen(
        [*mam, "run", "--slots", str(_SLOTS)],
        cwd=home,
        env={**environ, "NODE_NAME": os.path.basename(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _check(path: str, done: str, count: int, number: int) -> None:
    with open(done, encoding="ascii") as file:
        ran = Counter(file.read().split())
    doubles = [task for task, times in ran.items() if times > 1]
    if doubles or len(ran) != count:
        raise Wrong(f"{len(ran)} of {count} tasks ran, {len(doubles)} of them twice")
    with open(path, "rb") as tasks_file:
        found = parse(tasks_file.read()).tasks.values()
    if any(task.status is not TaskStatus.COMPLETED for task in found):
        raise Wrong("not all tasks are completed")
    nodes = {task.node for task in found}
    if len(nodes) != number and count >= _ENOUGH_FOR_ALL:
        raise Wrong(f"of {number} nodes only {nodes} ran a task")


FIGURES: Mapping[str, Callable[[Ground], list[Figure]]] = {
    "claim": claim,
    "merge": merge,
    "dispatchers": dispatchers,
}
