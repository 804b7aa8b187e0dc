"""History does not cost: what a claim does in the index is counted, not timed (AP-10, N23)."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores.base import GateKind
from tests.index.site import Site, foreign_record, ids_of
from tests.support.clock import FakeClock
from tests.support.jobs import add, in_status, request

FEW, MANY = 100, 5000


class Counted:
    """What was done while it watched: SQLite's steps, its statements, and files opened."""

    def __init__(self) -> None:
        self.steps = 0
        self.statements: list[str] = []
        self.opened = 0
        self.watching = False


@pytest.fixture(scope="module")
def counted() -> Iterator[Counted]:
    counts = Counted()
    connect, open_file = sqlite3.connect, os.open

    def step() -> None:
        counts.steps += counts.watching

    def statement(sql: str) -> None:
        if counts.watching:
            counts.statements.append(sql)

    def watched(*args: Any, **kwargs: Any) -> Any:
        db = connect(*args, **kwargs)
        db.set_progress_handler(step, 1)
        db.set_trace_callback(statement)
        return db

    def opened(*args: Any, **kwargs: Any) -> int:
        counts.opened += counts.watching
        return open_file(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", watched)
        patch.setattr(os, "open", opened)
        yield counts


@pytest.fixture(scope="module")
def short_and_long(
    tmp_path_factory: pytest.TempPathFactory, counted: Counted
) -> Iterator[tuple[Registry, Registry]]:
    """Two registries that differ in nothing but what has ended long ago."""
    sites = [Site(tmp_path_factory.mktemp(f"history-{n}"), FakeClock()) for n in (FEW, MANY)]
    yield with_history(sites[0], FEW), with_history(sites[1], MANY)
    for site in sites:
        site.close()


@contextmanager
def watching(counts: Counted) -> Iterator[None]:
    counts.watching = True
    try:
        yield
    finally:
        counts.watching = False


def with_history(site: Site, number: int) -> Registry:
    """A registry of some pending jobs and `number` that ended long ago."""
    site.place.mkdir(mode=0o700, parents=True)
    for i in range(number):
        ended = foreign_record(f"old{i}", status="completed", group="night", key=f"k{i}")
        (site.place / f"old{i}.json").write_bytes(ended)
    registry = site.open(slots=lambda: {"night": 3})
    parent = add(registry, "parent", agent_session="beta")
    registry.set_status(parent, Status.COMPLETED)
    wishes: list[dict[str, Any]] = [{}, {"priority": 2}, {"group": "night"}, {"after": [parent]}]
    registry.register([request(f"job {i}", **wishes[i % 4]) for i in range(40)])
    registry.pause(GateKind.AGENT, "gemini")
    assert len(ids_of(registry)) == number + 41
    return registry


ACTS: dict[str, Callable[[Registry], object]] = {
    "claim": lambda registry: registry.claim("alpha", agents=["shell", "gemini"]),
    "register": lambda registry: add(registry, "one more", key="new", agent_session="beta"),
    "register a twin": lambda registry: add(registry, "job 1"),
    "why not": lambda registry: registry.refusals(add(registry, group="night")),
    "cancel": lambda registry: registry.request_cancel(add(registry)),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_an_act_costs_the_same_after_five_thousand_jobs_as_after_a_hundred(
    short_and_long: tuple[Registry, Registry],
    counted: Counted,
    act: Callable[[Registry], object],
) -> None:
    costs = []
    for registry in short_and_long:
        registry.store.remember()  # each test has a folder of its own for a person's state
        counted.steps = counted.opened = 0
        with watching(counted):
            for _ in range(4):
                act(registry)
        costs.append((counted.steps, counted.opened))
    (few_steps, few_opened), (many_steps, many_opened) = costs
    assert few_steps > 0, "nothing was counted"
    assert many_steps <= 1.5 * few_steps
    assert many_opened == few_opened


def test_a_claim_walks_its_own_order_and_sorts_nothing(site: Site, counted: Counted) -> None:
    """The partial index holds what is pending, in the order of claims."""
    registry = with_history(site, FEW)
    counted.statements.clear()
    with watching(counted):
        assert registry.claim("alpha", agents=["shell"]) is not None
        add(registry, key="new")
    plans = _plans(site, counted.statements)
    claim = [plan for sql, plan in plans if "priority DESC" in sql]
    assert claim
    assert "claim_order" in claim[0]
    assert "TEMP B-TREE" not in claim[0]
    for sql, plan in plans:
        assert not re.search(r"SCAN (jobs|parents|prompts)(?! USING COVERING)", plan), (sql, plan)


def test_jobs_that_only_their_files_hold_back_are_walked_past_once(
    tmp_path: Path, counted: Counted
) -> None:
    """A stranger reopened their parent in place: four times the children, four times the work."""
    costs = []
    for number in (50, 200):
        site = Site(tmp_path / str(number), FakeClock())
        site.root.mkdir()
        registry = site.open()
        parent = in_status(registry, Status.COMPLETED, agent_session="beta")
        registry.register([request(f"child {i}", after=[parent]) for i in range(number)])
        ids_of(registry)
        site.edit_in_place(parent, status="error")
        counted.steps = counted.opened = 0
        with watching(counted):
            assert registry.claim("alpha") is None
        costs.append((counted.steps, counted.opened))
        site.close()
    (few_steps, few_opened), (many_steps, many_opened) = costs
    assert many_steps <= 6 * few_steps
    assert many_opened <= 6 * few_opened


def test_a_look_at_unchanged_files_opens_none_of_them(site: Site, counted: Counted) -> None:
    registry = with_history(site, FEW)
    site.wait_for_look()
    counted.opened = 0
    with watching(counted):
        ids_of(registry)
    assert counted.opened < 10


def test_a_list_reads_no_record(site: Site, counted: Counted) -> None:
    """Issue 3: bodies are read only when shown."""
    registry = with_history(site, FEW)
    fresh = site.open()
    counted.opened = 0
    with watching(counted):
        assert len(ids_of(registry)) == FEW + 41
        assert len(ids_of(fresh)) == FEW + 41
    assert counted.opened < 10


def _plans(site: Site, statements: list[str]) -> list[tuple[str, str]]:
    """How SQLite goes about each of these questions."""
    plans = []
    db = sqlite3.connect(site.database)
    try:
        for sql in statements:
            if sql.lstrip().startswith(("SELECT", "UPDATE", "DELETE")):
                rows = db.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
                plans.append((sql, "; ".join(row[3] for row in rows)))
    finally:
        db.close()
    return plans
