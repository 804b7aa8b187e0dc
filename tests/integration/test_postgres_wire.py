"""What is said to PostgreSQL and heard from it, below every transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from mam_core.errors import StoreError
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.store_urls import StoreUrl
from mam_core.stores import postgres_wire
from mam_core.stores.postgres import PostgresDatabase
from mam_core.stores.postgres_bell import PostgresBell
from mam_core.stores.postgres_door import Connection, NoAnswer, connect
from mam_core.stores.postgres_wire import Wire
from mam_core.stores.sql_store import SqlStore
from tests.support.forwarder import pooler
from tests.support.jobs import LABEL, add
from tests.support.patience import eventually

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


class TestASilentServer:
    """Behind a pooler that hangs: the connection stands, and nothing answers."""

    @pytest.fixture(autouse=True)
    def short_patience(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Connection, "answer_sec", 0.3)

    def test_is_given_up_by_a_wire(self, postgres_schema: str) -> None:
        with pooler(postgres_schema) as (between, uri):
            wire = Wire(connect(uri))
            assert wire.ask("SELECT 1") == [(1,)]
            between.hang()
            with pytest.raises(NoAnswer, match=r"no answer for 0\.3 s"):
                wire.ask("SELECT 1")
            assert wire.closed

    def test_is_given_up_with_more_to_say_than_it_takes(self, postgres_schema: str) -> None:
        with pooler(postgres_schema) as (between, uri):
            wire = Wire(connect(uri))
            between.hang()
            with pytest.raises(NoAnswer):
                wire.ask("SELECT CAST(:body AS BYTEA)", {"body": bytes(1 << 24)})

    def test_is_given_up_by_a_plain_connection(self, postgres_schema: str) -> None:
        """As bells, watches and the steps to a new version have it."""
        with pooler(postgres_schema) as (between, uri):
            connection = connect(uri)
            between.hang()
            with pytest.raises(NoAnswer), connection:
                connection.execute("SELECT 1")
            assert connection.closed

    def test_is_a_sentence_for_a_relay(self, postgres_schema: str) -> None:
        with pooler(postgres_schema) as (between, uri):
            ear = connect(uri)
            bell = PostgresBell(lambda: ear, "the store")
            between.hang()
            with pytest.raises(StoreError, match="the store cannot be reached: no answer"):
                bell.relaying().__enter__()

    def test_takes_no_connection(self, postgres_schema: str) -> None:
        with pooler(postgres_schema) as (between, uri):
            between.hang()
            with pytest.raises(psycopg.OperationalError, match="timeout"):
                connect(f"{uri}&connect_timeout=2")

    def test_is_a_sentence_and_then_all_goes_on(self, postgres_schema: str, tmp_path: Path) -> None:
        with pooler(postgres_schema) as (between, uri):
            database = PostgresDatabase(StoreUrl.parse(uri))
            store = SqlStore(
                database, str(tmp_path / "jobs"), str(tmp_path / "logs"), database.bell
            )
            with Registry(store) as registry:
                job_id = add(registry)
                assert registry.get(job_id).job_id == job_id
                between.hang()
                with pytest.raises(StoreError, match="cannot be reached: no answer for"):
                    registry.get(job_id)
                between.go_on()
                assert eventually(lambda: _found(registry, job_id), "it answers").job_id == job_id

    def test_that_is_at_long_work_is_waited_for(self, postgres_schema: str) -> None:
        with connect(postgres_schema) as connection, connection.patient(60):
            connection.execute("SELECT pg_sleep(0.6)")


def _found(registry: Registry, job_id: str) -> Job | None:
    with suppress(StoreError):
        return registry.get(job_id)
    return None


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
