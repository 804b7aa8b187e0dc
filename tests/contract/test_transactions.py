"""What the rules above rely on: a transaction happens whole or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from mam_core.audit import AuditLine
from mam_core.errors import JobNotFound, RegistryMissing
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.stores.base import Gate, GateKind, Gates, Query
from mam_core.summaries import Unreadable
from tests.contract.conftest import MakeRegistry
from tests.support.jobs import add, in_status, request
from tests.support.patience import PATIENCE_SEC
from tests.support.rows import each_row


class Interrupted(Exception):
    """Something happens in the middle of a transaction."""


def a_line() -> AuditLine:
    return AuditLine("edited", "2026-06-19T09:30:00.000Z", {"by": "ann"}, 2)


class TestWholeOrNotAtAll:
    def test_an_exception_leaves_everything_as_it_was(self, registry: Registry) -> None:
        """D5."""
        pending, done = add(registry), in_status(registry, Status.COMPLETED)
        before = registry.get(pending), registry.get(done)
        history = [list(registry.store.audit.lines(job_id)) for job_id in (pending, done)]

        def interrupted_work() -> None:
            with registry.store.transaction() as tx:
                tx.put(before[0].evolve(prompt="changed", revision=9), a_line())
                tx.insert([Job("brandnew", Status.PENDING)], [a_line()])
                tx.note(pending, a_line())
                tx.set_gates(Gates((Gate(GateKind.ALL, "", "now"),), {"g": 1}))
                tx.archive([before[1]], "batch", a_line())
                raise Interrupted

        with pytest.raises(Interrupted):
            interrupted_work()
        assert (registry.get(pending), registry.get(done)) == before
        assert [list(registry.store.audit.lines(i)) for i in (pending, done)] == history
        with pytest.raises(JobNotFound):
            registry.get("brandnew")
        assert registry.store.facts().gates() == Gates()
        assert registry.restore() == []

    def test_nothing_is_seen_from_outside_before_the_end(self, make_registry: MakeRegistry) -> None:
        """B5, D3: a reader needs no lock and is not told of what may never be."""
        writer, reader = make_registry(), make_registry()
        job_id = add(writer)
        with writer.store.transaction() as tx:
            tx.put(tx.get(job_id).evolve(prompt="not yet"), None)
            seen: list[str] = []
            peek = threading.Thread(target=lambda: seen.append(reader.get(job_id).prompt))
            peek.start()
            peek.join(PATIENCE_SEC)
            assert seen == ["count the stars"]
        assert reader.get(job_id).prompt == "not yet"

    def test_what_is_put_is_read_inside_the_same_transaction(self, registry: Registry) -> None:
        job_id = add(registry)
        with registry.store.transaction() as tx:
            tx.put(tx.get(job_id).evolve(priority=4), None)
            tx.put(tx.get(job_id).evolve(prompt="both"), None)
        job = registry.get(job_id)
        assert (job.priority, job.prompt) == (4, "both")

    def test_a_store_goes_on_after_an_exception(self, registry: Registry) -> None:
        for _ in range(3):
            with pytest.raises(Interrupted), registry.store.transaction(create=True):
                raise Interrupted
        assert registry.get(add(registry)).status is Status.PENDING

    def test_threads_exclude_one_another(self, make_registry: MakeRegistry) -> None:
        """B4: some share a handle, some do not."""
        shared = make_registry()
        job_id = add(shared)
        handles = [shared, shared, make_registry(), make_registry()]
        numbers: list[int] = []

        def take(registry: Registry) -> None:
            numbers.extend(registry.next_seq(job_id) for _ in range(25))

        threads = [threading.Thread(target=take, args=(handle,)) for handle in handles]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SEC)
        assert sorted(numbers) == list(range(1, 101))


class TestReading:
    def test_unknown_fields_survive_every_rewrite(self, registry: Registry) -> None:
        """Decision 5."""
        job_id = add(registry)
        extra = {"colour": "blue", "nested": {"a": [1, 2.5, None, "가"]}}
        with registry.store.transaction() as tx:
            tx.put(tx.get(job_id).evolve(extra=extra), None)
        registry.claim("alpha")
        registry.next_seq(job_id)
        registry.set_status(job_id, Status.ERROR)
        registry.retry(job_id)
        assert registry.get(job_id).extra == extra
        assert b'"colour"' in registry.store.raw(job_id)

    def test_any_text_and_number_comes_back_as_it_was(self, registry: Registry) -> None:
        """Fault 52: also what a database has no form for."""
        strange = "a\0b\udc80c 별 \u202e \x1b[31m"
        job = registry.get(add(registry)).evolve(
            prompt=f"find {strange}",
            agent=strange,
            agent_session=strange,
            group=strange,
            key=strange,
            node=strange,
            order=2**62,
            priority=-(2**62),
            revision=2,
        )
        with registry.store.transaction() as tx:
            tx.put(job, None)
        assert registry.get(job.job_id) == job
        (row,) = registry.store.find(Query(agent_session=strange))[0]
        for query in (Query(agent=strange), Query(group=strange), Query(text=strange.upper())):
            assert [body.job_id for body in registry.store.bodies(query)] == [job.job_id]
        with registry.store.transaction() as tx:
            assert tx.live_with_key(strange) == job.job_id
            assert tx.live_twin(strange, job.prompt) == job.job_id
            assert tx.live_with_key(strange.replace("\0", "")) is None
        claimed = registry.claim(strange)
        assert claimed is not None
        assert claimed.agent == strange
        assert registry.get(job.job_id) == claimed
        assert row.job_id == job.job_id

    def test_lists_are_filtered_and_in_order_of_registration(self, registry: Registry) -> None:
        a = add(registry, "Find the STARS", agent="codex", group="night")
        b = add(registry, "count sheep", agent_session="beta")
        c = add(registry, "별을 세어라", priority=9)
        registry.claim("beta")
        cases: list[tuple[Query, list[str]]] = [
            (Query(), [a, b, c]),
            (Query(statuses=frozenset({Status.PENDING})), [a, c]),
            (Query(statuses=frozenset({Status.RUNNING, Status.ERROR})), [b]),
            (Query(agent_session="beta"), [b]),
            (Query(group="night"), [a]),
            (Query(agent="codex"), [a]),
            (Query(text="stars"), [a]),
            (Query(text="세어"), [c]),
            (Query(text=b[:6].upper()), [b]),
            (Query(agent="codex", agent_session="beta"), []),
        ]
        for query, expected in cases:
            rows, unreadable = registry.store.find(query)
            assert ([row.job_id for row in rows], unreadable) == (expected, [])
            bodies = list(registry.store.bodies(query))
            assert not any(isinstance(body, Unreadable) for body in bodies)
            assert [body.job_id for body in bodies] == expected

    def test_a_row_tells_what_a_list_shows(self, registry: Registry) -> None:
        job_id = add(registry, "x" * 500, priority=3, group="night")
        job = registry.claim("alpha")
        assert job is not None
        (row,) = registry.store.find(Query())[0]
        assert (row.job_id, row.status, row.attempt) == (job_id, Status.RUNNING, 1)
        assert (row.priority, row.group, row.order) == (3, "night", job.order)
        assert row.head == "x" * 200

    def test_the_counts_that_the_rules_ask_for(self, registry: Registry) -> None:
        with registry.store.transaction(create=True) as tx:
            assert (tx.last_order(), tx.running_in("night")) == (0, 0)
            assert tx.status_of("nosuchjob") is None
        ids = [
            answer.job_id
            for answer in registry.register([request(f"job {i}", group="night") for i in range(4)])
        ]
        registry.claim("alpha")
        registry.claim("alpha")
        registry.finish(ids[0], Status.COMPLETED, attempt=1)
        with registry.store.transaction() as tx:
            assert tx.running_in("night") == 1
            assert [tx.status_of(job_id) for job_id in ids[:3]] == [
                Status.COMPLETED,
                Status.RUNNING,
                Status.PENDING,
            ]
            assert tx.last_order() == registry.get(ids[3]).order


class TestNoRegistryYet:
    @each_row(
        "ask",
        [
            lambda r: r.store.find(Query()) == ([], []),
            lambda r: list(r.store.bodies(Query())) == [],
            lambda r: r.claim("alpha") is None,
        ],
    )
    def test_asking_makes_none(self, registry: Registry, ask: Callable[[Registry], bool]) -> None:
        """E16."""
        assert ask(registry)
        with pytest.raises(RegistryMissing), registry.store.transaction():
            pass

    def test_a_closed_store_opens_again_when_it_is_used(self, registry: Registry) -> None:
        job_id = add(registry)
        registry.store.close()
        assert registry.get(job_id).job_id == job_id
        assert registry.next_seq(job_id) == 1

    def test_closing_one_handle_leaves_the_others_usable(self, make_registry: MakeRegistry) -> None:
        """The console closes a view while a worker thread goes on writing."""
        first, second = make_registry(), make_registry()
        job_id = add(first)
        assert second.next_seq(job_id) == 1
        first.store.close()
        assert second.next_seq(job_id) == 2
        assert second.get(job_id).last_seq == 2
