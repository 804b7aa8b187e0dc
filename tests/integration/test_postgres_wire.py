"""What is said to PostgreSQL and heard from it, below every transaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mam_core.registry import Registry
from mam_core.store_urls import StoreUrl
from mam_core.stores import postgres_wire
from mam_core.stores.postgres import PostgresDatabase
from mam_core.stores.postgres_door import connect
from mam_core.stores.postgres_wire import Wire
from mam_core.stores.sql_store import SqlStore
from tests.support.jobs import LABEL, add

_FAILS = "SELECT 1 / CAST(:zero AS INTEGER)"


@pytest.fixture
def wire(postgres_schema: str) -> Iterator[Wire]:
    made = Wire(connect(postgres_schema))
    yield made
    made.close()


def test_every_kind_of_value_comes_back_as_it_went(wire: Wire) -> None:
    given = {"text": "별 '\\ $1", "bytes": b"\0\xff", "whole": 2**60, "part": 0.1 + 0.2}
    sql = (
        "SELECT CAST(:text AS TEXT), CAST(:bytes AS BYTEA), CAST(:whole AS BIGINT), "
        "CAST(:part AS DOUBLE PRECISION), CAST(:yes AS BOOLEAN), CAST(:none AS TEXT)"
    )
    (row,) = wire.ask(sql, {**given, "yes": True, "none": None})
    assert row == (*given.values(), True, None)


def test_large_values_and_many_statements_do_not_block_each_other(wire: Wire) -> None:
    """Neither side may wait for the other to read first."""
    body = bytes(range(256)) * 4096
    for _ in range(8):
        wire.say("SELECT CAST(:body AS BYTEA)", {"body": body})
    assert wire.hear() == [(body,)]


def test_the_first_problem_is_told_and_the_next_word_is_heard(wire: Wire) -> None:
    wire.say("SELECT 1")
    wire.say(_FAILS, {"zero": 0})
    wire.say("SELECT 'never prepared'")
    with pytest.raises(psycopg.errors.DivisionByZero):
        wire.hear()
    assert wire.ask("SELECT 'never prepared'") == [("never prepared",)]
    assert wire.ask(_FAILS, {"zero": 1}) == [(1,)]


def test_what_is_not_waited_for_spoils_nothing(wire: Wire) -> None:
    wire.say("SELECT 'asked'")
    assert wire.hear(then="SELECT 1 / 0") == [("asked",)]
    assert wire.is_alive()
    assert wire.ask("SELECT 'again'") == [("again",)]
    assert wire.plain().execute("SELECT 1").fetchone() == (1,)


def test_a_zero_byte_in_a_text_is_refused_and_not_cut_off(wire: Wire) -> None:
    with pytest.raises(psycopg.DataError, match="zero byte"):
        wire.ask("SELECT CAST(:text AS TEXT)", {"text": "a\0b"})
    assert wire.ask("SELECT 1") == [(1,)]


def test_statements_beyond_those_that_are_kept(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_wire, "_KEPT", 2)
    for number in (*range(5), *range(5)):
        assert wire.ask(f"SELECT {number}") == [(number,)]


def test_a_server_that_ended_the_link_is_noticed(wire: Wire, postgres_schema: str) -> None:
    ((pid,),) = wire.ask("SELECT pg_backend_pid()")
    with psycopg.connect(postgres_schema, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
    assert not wire.is_alive()
    with pytest.raises(psycopg.OperationalError):
        wire.ask("SELECT 1")


def test_who_is_interrupted_leaves_no_word_behind(
    postgres_schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim that was said and not heard must not be made by the next talk."""
    database = PostgresDatabase(StoreUrl.parse(postgres_schema))
    store = SqlStore(database, str(tmp_path / "jobs"), str(tmp_path / "logs"), database.bell)
    with Registry(store) as registry:
        job_id = add(registry)

        def interrupted(self: Wire, then: str = "") -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(Wire, "hear", interrupted)
            with pytest.raises(KeyboardInterrupt):
                registry.claim(LABEL)
        assert registry.get(job_id).attempt == 0
        job = registry.claim(LABEL)
        assert job is not None
        assert job.attempt == 1
