"""Groups whose slots change while everything runs: the same in every store."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from mam_core import acts
from mam_core.acts import KEPT, Act, Acts, Deed
from mam_core.registry import Registry
from mam_core.stores.base import GateKind, Gates, Paper
from tests.support.clock import FakeClock
from tests.support.jobs import add

MakeRegistry = Callable[..., Registry]


def told(registry: Registry) -> Acts:
    return acts.decode(registry.store.paper(Paper.ACTS))


def test_slots_change_for_every_worker_at_its_next_claim(make_registry: MakeRegistry) -> None:
    """Issue 10, item 3: the store's word goes before what a worker's own file says."""
    operator, worker = make_registry(), make_registry(slots={"p1": 1})
    for _ in range(3):
        add(operator, group="p1")
    assert worker.claim("alpha") is not None
    assert worker.claim("alpha") is None
    operator.set_slots("p1", 2)
    assert worker.claim("alpha") is not None
    assert worker.claim("alpha") is None
    assert worker.store.facts().gates().slots == {"p1": 2}
    operator.set_slots("p1", None)
    assert worker.store.facts().gates() == Gates()


def test_n46_fewer_slots_end_nothing(make_registry: MakeRegistry) -> None:
    registry = make_registry(slots={"p1": 2})
    first, second, _ = (add(registry, group="p1") for _ in range(3))
    assert [registry.claim("alpha"), registry.claim("alpha")] != [None, None]
    registry.set_slots("p1", 0)
    assert [registry.get(job_id).status for job_id in (first, second)] == ["running", "running"]
    assert registry.claim("alpha") is None


def test_a_change_is_kept_with_who_when_and_why(registry: Registry, clock: FakeClock) -> None:
    act = registry.set_slots("p1", 3, why="the night shift")
    assert told(registry).acts == (
        Act(act.at, "ann", Deed.SET, "p1", None, 3, "the night shift", {}, 1, act.at),
    )
    clock.pass_time(60)
    registry.set_slots("p1", 2)
    assert [(one.before, one.after) for one in told(registry).acts] == [(None, 3), (3, 2)]
    assert told(registry).last_change("p1") == told(registry).last("p1")
    assert told(registry).last("p2") is None


def test_a_pause_and_a_change_of_slots_do_not_undo_each_other(make_registry: MakeRegistry) -> None:
    add(make_registry())
    groups = [f"g{number}" for number in range(6)]
    changes: list[Callable[[], object]] = [
        partial(make_registry().set_slots, group, 4) for group in groups
    ]
    changes += [partial(make_registry().pause, GateKind.GROUP, group) for group in groups]
    with ThreadPoolExecutor(len(changes)) as threads:
        for done in [threads.submit(change) for change in changes]:
            done.result()
    gates = make_registry().store.facts().gates()
    assert dict(gates.slots) == dict.fromkeys(groups, 4)
    assert sorted(gate.name for gate in gates.closed) == groups
    assert len(told(make_registry()).acts) == len(groups)


def test_the_acts_are_bounded_and_the_newest_stay(registry: Registry) -> None:
    paper = Acts()
    for number in range(KEPT + 5):
        at = "2026-06-19T09:30:00.000Z"
        paper = paper.with_act(Act(at, "ann", Deed.SET, "p1", number, number + 1))
    add(registry)
    with registry.store.transaction() as tx:
        tx.set_paper(Paper.ACTS, acts.encode(paper))
    assert len(told(registry).acts) == KEPT
    assert told(registry).acts[-1].after == KEPT + 5


def test_a_paper_is_there_for_whoever_only_looks(registry: Registry) -> None:
    assert registry.store.paper(Paper.ACTS) is None
    add(registry)
    assert registry.store.paper(Paper.ACTS) is None
    with registry.store.transaction() as tx:
        assert tx.paper(Paper.ACTS) is None
        tx.set_paper(Paper.ACTS, b"{}")
    assert registry.store.paper(Paper.ACTS) == b"{}"
