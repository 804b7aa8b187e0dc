"""The figures of the registry: claiming and registering, and all of them by name.

Each function measures one comparison, or a few that belong together, and knows
its goal. Its name is what ``--only`` takes.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping

from bench.commands import help_text, list_json, list_table, pick
from bench.crowd import HUEY, OURS, Crowd
from bench.figures import Figure, Measure, Wrong
from bench.ground import LABELS, Ground
from bench.rounds import Runner, run
from bench.yardsticks import HueyQueues, scanning_registry
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.wiring import open_registry

_PROCESSES = 8


def claim(ground: Ground) -> list[Figure]:
    effort = ground.effort
    path, queues = _backlogs(ground)
    loop = ground.raw_loop
    with open_registry(path) as registry, scanning_registry(path) as scanning:
        label = _Label()
        ours = _claiming("ours", registry, effort.claims)
        samples = run(
            [
                ours,
                _times("huey", lambda: queues.claim(label.now), effort.claims, label.turn),
                _times("raw", loop.replace, effort.claims),
                _times("raw, new names", loop.create, effort.claims),
            ],
            effort.rounds,
        )
        # Apart, since it is slow and leaves the index behind: our untimed claim catches up with it.
        scan = _claiming("scan", scanning, effort.scans)
        slow = run([ours, Runner(scan.name, scan.work)], effort.scan_rounds)
    queues.close()
    what = f"claim at {effort.pending:,} pending, open handle"
    mine = samples["ours"]
    return [
        Figure("claim", what, "the scan", Measure.SPEED, slow["ours"], slow["scan"], 200),
        Figure("claim", what, "SqliteHuey", Measure.SPEED, mine, samples["huey"], 0.5, 1),
        Figure("claim", what, "raw loop", Measure.SPEED, mine, samples["raw"], 0.5),
        Figure("claim", what, "raw, new names", Measure.SPEED, mine, samples["raw, new names"]),
    ]


def new_handle(ground: Ground) -> list[Figure]:
    count = ground.effort.new_handles
    path, queues = _backlogs(ground)
    queues.close()
    label = _Label()

    def ours() -> None:
        with open_registry(path) as registry:
            _claimed(registry, label.now)

    samples = run(
        [
            _times("ours", ours, count, label.turn),
            _times("huey", lambda: queues.claim_with_new_handle(label.now), count, label.turn),
        ],
        ground.effort.rounds,
    )
    what = f"claim at {ground.effort.pending:,} pending, a new handle each"
    return [_against_huey("new-handle", what, samples, 1.5, 2.5)]


def crowd(ground: Ground) -> list[Figure]:
    effort = ground.effort
    count = effort.some(_PROCESSES)
    path, queues = _backlogs(ground)
    queues.close()
    taken: dict[str, list[str]] = {OURS: [], HUEY: []}
    before = _running(path)
    with Crowd(count, path, queues.path) as processes:

        def side(name: str) -> Runner:
            label = _Label()

            def claim(claims: int) -> int:
                got = processes.claim(name, label.now, claims)
                taken[name] += got
                return len(got)

            def warm() -> None:
                label.turn()
                claim(1)

            return Runner(name, lambda: claim(effort.crowd_claims), warm)

        samples = run([side(OURS), side(HUEY)], effort.crowd_rounds)
    for name, ids in taken.items():
        if doubles := len(ids) - len(set(ids)):
            raise Wrong(f"{doubles} of {len(ids)} jobs were handed out twice by {name}")
    if _running(path) - before != set(taken[OURS]):
        raise Wrong("the jobs that are running are not those that were handed out")
    what = f"claim at {effort.pending:,} pending, {count} processes, no job twice"
    return [_against_huey("crowd", what, samples, 0.7)]


def backlog(ground: Ground) -> list[Figure]:
    effort = ground.effort
    what, against = f"claim at {effort.large:,} pending", f"at {effort.claimable:,}"
    return [_same_cost(ground, "backlog", what, against, ground.large, ground.small)]


def history(ground: Ground) -> list[Figure]:
    effort = ground.effort
    what = f"claim at {effort.few} pending with {effort.large:,} finished"
    return [_same_cost(ground, "history", what, "with none", ground.old, ground.few)]


def register(ground: Ground) -> list[Figure]:
    effort = ground.effort
    with open_registry(ground.crowded) as registry:
        raw = _times("raw", ground.raw_loop.create_durably, effort.registers)
        samples = run([ground.one_by_one(registry), raw], effort.rounds)
    against = "raw loop with directory fsync"
    ours, theirs = samples["single"], samples["raw"]
    return [Figure("register", "register", against, Measure.SPEED, ours, theirs, 0.6)]


def bulk(ground: Ground) -> list[Figure]:
    effort = ground.effort
    with open_registry(ground.path("bulk")) as registry:
        sides = [ground.one_by_one(registry), ground.together(registry, effort.bulk)]
        samples = run(sides, effort.bulk_rounds)
    figures = [
        Figure(
            "bulk",
            f"register {count:,} in one call, per job",
            "one by one",
            Measure.SPEED,
            got["bulk"],
            got["single"],
            5,
        )
        for count, got in ((effort.bulk, samples), (effort.pending, ground.one_call))
    ]
    os.sync()
    return figures


#: In the order in which they are best measured: lists before claims have made the jobs differ,
#: history after the backlog that it is made of.
FIGURES: Mapping[str, Callable[[Ground], list[Figure]]] = {
    "help": help_text,
    "list": list_table,
    "list-json": list_json,
    "pick": pick,
    "claim": claim,
    "new-handle": new_handle,
    "crowd": crowd,
    "register": register,
    "bulk": bulk,
    "backlog": backlog,
    "history": history,
}


class _Label:
    """The label of the turn: all claims of a turn are for one session, as a worker's are."""

    def __init__(self) -> None:
        self._labels = itertools.cycle(LABELS)
        self.now = LABELS[-1]

    def turn(self) -> None:
        self.now = next(self._labels)


def _backlogs(ground: Ground) -> tuple[str, HueyQueues]:
    """Ours and huey's, both full."""
    ground.top_up(ground.crowded, ground.effort.pending)
    queues = HueyQueues(os.path.join(ground.root, "huey.db"))
    queues.fill(LABELS, ground.effort.pending, ground.record)
    os.sync()
    return ground.crowded, queues


def _times(
    name: str, operation: Callable[[], object], count: int, turn: Callable[[], None] = lambda: None
) -> Runner:
    """The operation so many times in a turn, after an untimed first one."""

    def work() -> int:
        for _ in range(count):
            operation()
        return count

    def before() -> None:
        turn()
        operation()

    return Runner(name, work, before)


def _claiming(name: str, registry: Registry, count: int) -> Runner:
    label = _Label()
    return _times(name, lambda: _claimed(registry, label.now), count, label.turn)


def _claimed(registry: Registry, label: str) -> None:
    if registry.claim(label) is None:
        raise Wrong(f"no job of {label} is left to claim")


def _same_cost(
    ground: Ground, name: str, what: str, against: str, large: str, small: str
) -> Figure:
    claims = ground.effort.few_claims
    with open_registry(large) as one, open_registry(small) as other:
        sides = [_claiming("large", one, claims), _claiming("small", other, claims)]
        samples = run(sides, ground.effort.rounds)
    return Figure(name, what, against, Measure.COST, samples["large"], samples["small"], 1.5)


def _against_huey(
    name: str, what: str, samples: dict[str, list[float]], goal: float, stretch: float | None = None
) -> Figure:
    ours, theirs = samples["ours"], samples["huey"]
    return Figure(name, what, "SqliteHuey likewise", Measure.SPEED, ours, theirs, goal, stretch)


def _running(path: str) -> set[str]:
    with open_registry(path) as registry:
        found, _ = registry.store.find(Query(statuses=frozenset({Status.RUNNING})))
    return {job.job_id for job in found}
