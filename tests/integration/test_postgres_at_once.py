"""A claim in one statement: the same claim as in a transaction, whatever stands in its way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mam_core.leases import LeaseTerms
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry
from mam_core.store_urls import StoreUrl
from mam_core.stores.base import GateKind, Query
from mam_core.stores.postgres import PostgresDatabase
from mam_core.stores.postgres_wire import Wire
from mam_core.stores.sql_rows import moving
from mam_core.stores.sql_store import SqlStore
from tests.support.clock import FakeClock
from tests.support.jobs import LABEL, add, request
from tests.support.postgres import drop_schema, new_schema

_TABLES = ("jobs", "parents", "prompts", "artifacts", "histories", "history_lines", "gates")


def opened(uri: str, root: Path, **given: Any) -> Registry:
    database = PostgresDatabase(StoreUrl.parse(uri), shares_clock=False)
    store = SqlStore(database, str(root / "jobs"), str(root / "logs"), database.bell)
    return Registry(store, **{"actor": "ann", "node": "host", "clock": FakeClock(), **given})


@pytest.fixture
def registry(postgres_schema: str, tmp_path: Path) -> Iterator[Registry]:
    with opened(postgres_schema, tmp_path) as made:
        yield made


def row_of(uri: str, job_id: str, *columns: str) -> tuple[Any, ...]:
    with psycopg.connect(uri) as db:
        found = db.execute(
            f"SELECT {', '.join(columns)} FROM jobs WHERE job_id = %s".encode(), (job_id,)
        ).fetchone()
    assert found is not None
    return found


def test_takes_one_round_trip(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        add(registry, f"job {number}")
    assert registry.claim(LABEL) is not None
    heard: list[str] = []
    hear = Wire.hear

    def counted(wire: Wire, then: str = "") -> Any:
        heard.append(then)
        return hear(wire, then)

    monkeypatch.setattr(Wire, "hear", counted)
    assert registry.claim(LABEL) is not None
    assert len(heard) == 1


def test_is_the_record_for_everybody(registry: Registry, postgres_schema: str) -> None:
    job_id = add(registry, expected_artifacts=["a.txt"], workdir="/tmp")
    job = registry.claim(LABEL, lease=LeaseTerms("worker-1", 30.0), pid=4711)
    assert job is not None
    assert row_of(postgres_schema, job_id, "claim IS NULL") == (False,), "it was claimed at once"
    assert registry.get(job_id) == job
    assert list(registry.store.bodies(Query())) == [job]
    ((stored,), raw) = list(registry.store.stored(Query())), registry.store.raw(job_id)
    assert stored == raw
    assert b'"worker-1"' in raw
    told = moving(job)
    names = [name for name in told if name not in ("body", "at_once")]
    assert row_of(postgres_schema, job_id, *names) == tuple(told[name] for name in names)


def test_is_written_out_by_the_next_change(registry: Registry, postgres_schema: str) -> None:
    job_id = add(registry)
    terms = LeaseTerms("worker-1", 30.0)
    assert registry.claim(LABEL, lease=terms) is not None
    assert registry.heartbeat(job_id, terms, attempt=1).lease is not None
    assert row_of(postgres_schema, job_id, "claim") == (None,)
    registry.requeue(job_id, Reason.LOST, attempt=1)
    again = registry.claim(LABEL)
    assert again is not None
    assert again.attempt == 2
    assert registry.finish(job_id, Status.COMPLETED, attempt=2).status is Status.COMPLETED
    assert [line["n"] for line in registry.store.audit.events(job_id)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("secret", ["token", "name"])
def test_that_could_tell_a_secret_is_made_in_a_transaction(
    postgres_schema: str, tmp_path: Path, secret: str
) -> None:
    """Decision 10: the line names its actor, and a job's secrets are taken out of every line."""
    with opened(postgres_schema, tmp_path) as plain:
        job_id = add(plain, auth_token="tk-canary-0123456789") if secret == "token" else add(plain)
    actor = "tk-canary-0123456789" if secret == "token" else "any-job-5c0e9d1b"
    with opened(postgres_schema, tmp_path, actor=actor) as registry:
        assert registry.claim(LABEL) is not None
        assert row_of(postgres_schema, job_id, "claim") == (None,)
        lines = b"".join(registry.store.audit.lines(job_id))
    assert (b"tk-canary-0123456789" in lines) is False


def test_a_record_that_other_hands_have_spoilt_costs_one_row(
    registry: Registry, postgres_schema: str
) -> None:
    """Promise 10."""
    add(registry, "first")
    second = add(registry, "second")
    with psycopg.connect(postgres_schema, autocommit=True) as db:
        db.execute("UPDATE jobs SET body = 'no record' WHERE job_id <> %s", (second,))
    job = registry.claim(LABEL)
    assert job is not None
    assert job.job_id == second
    assert registry.claim(LABEL) is None


def test_a_registry_of_the_version_before_is_brought_up(
    postgres_schema: str, tmp_path: Path
) -> None:
    with opened(postgres_schema, tmp_path) as first:
        job_id = add(first)
    with psycopg.connect(postgres_schema, autocommit=True) as db:
        for column in ("at_once", "revision", "claim"):
            db.execute(f"ALTER TABLE jobs DROP COLUMN {column}".encode())
        db.execute("UPDATE mam_schema SET version = 1")
    with opened(postgres_schema, tmp_path) as registry:
        job = registry.claim(LABEL)
        assert job is not None
        assert (job.job_id, job.revision) == (job_id, 2)
        registry.requeue(job_id, Reason.LOST, attempt=1)
        assert registry.claim(LABEL) is not None
        assert row_of(postgres_schema, job_id, "revision", "claim IS NULL") == (4, False)


# -- against the longer way ------------------------------------------------------------------


class InTransactions(Registry):
    """The same registry, which always goes the longer way."""

    def claim(self, *words: Any, **given: Any) -> Job | None:
        self.store.claim_at_once = lambda *_: None  # type: ignore[method-assign]
        return super().claim(*words, **given)


def a_request(dice: random.Random, ids: list[str]) -> dict[str, Any]:
    more: dict[str, Any] = {"agent": dice.choice(["shell", "claude"])}
    if dice.random() < 0.4:
        more["priority"] = dice.randint(-2, 3)
    if dice.random() < 0.5:
        more["group"] = dice.choice(["night", "day", "밤"])
    if dice.random() < 0.2:
        more["not_before"] = dice.choice(["2026-06-19T09:29:00Z", "2026-06-19T09:45:00Z"])
    if ids and dice.random() < 0.3:
        more["after"] = [dice.choice(ids)]
    if dice.random() < 0.2:
        more["auth_token"] = "tk-abcdefghijklmnop"
    return request(f"job {len(ids)} 별 \0" if dice.random() < 0.1 else f"job {len(ids)}", **more)


def shown(uri: str, registry: Registry, job_id: str) -> tuple[Any, ...]:
    """All that anybody can see of a job, except the number of the transaction."""
    columns = [name for name in moving(registry.get(job_id)) if name not in ("body", "at_once")]
    lines = list(registry.store.audit.lines(job_id))
    return registry.get(job_id), registry.store.raw(job_id), lines, row_of(uri, job_id, *columns)


@pytest.mark.parametrize("seed", range(4))
def test_is_the_same_as_in_a_transaction(
    postgres_server: str, postgres_schema: str, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    other_schema = new_schema(postgres_server)
    slots = {"night": 2}
    given: dict[str, Any] = {"actor": "ann", "node": "host", "clock": FakeClock()}
    given["slots"] = lambda: slots
    with (
        opened(postgres_schema, tmp_path, **given) as quick,
        InTransactions(opened(other_schema, tmp_path).store, **given) as slow,
    ):
        ids: list[str] = []
        for _ in range(25):
            ids += [quick.register([a_request(dice, ids)])[0].job_id]
        with slow.store.transaction(create=True):
            pass
        _copied(postgres_server, postgres_schema, other_schema)
        ways = set()
        for _ in range(40):
            act, chosen = dice.random(), dice.choice(ids)
            agents = dice.choice([None, ["shell"], ["claude", "shell"]])
            lease = dice.choice([None, LeaseTerms("worker-1", 30.0)])
            answers: list[Job | None] = []
            for each in (quick, slow):
                if act < 0.65:
                    job = each.claim(LABEL, agents=agents, lease=lease, pid=4711)
                    answers.append(job)
                elif act < 0.8:
                    each.set_status(chosen, Status.COMPLETED)
                elif act < 0.9:
                    each.pause(GateKind.GROUP, "day")
                else:
                    each.resume(GateKind.GROUP, "day")
            assert answers[:1] == answers[1:]
            for job_id in {job.job_id for job in answers if job is not None}:
                ways.add(row_of(postgres_schema, job_id, "claim IS NULL")[0])
                assert shown(postgres_schema, quick, job_id) == shown(other_schema, slow, job_id)
            assert isinstance(quick.clock, FakeClock)
            quick.clock.pass_time(dice.choice([0.001, 1, 400]))
        assert ways == {True, False}, "both ways were gone"
    drop_schema(other_schema)


def _copied(server: str, here: str, there: str) -> None:
    def schema(uri: str) -> str:
        with psycopg.connect(uri) as db:
            found = db.execute("SELECT current_schema()").fetchone()
            assert found is not None
            return str(found[0])

    with psycopg.connect(server, autocommit=True) as db:
        for table in _TABLES:
            words = f"INSERT INTO {schema(there)}.{table} SELECT * FROM {schema(here)}.{table}"
            db.execute(words.encode())
