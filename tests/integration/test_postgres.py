"""What only the PostgreSQL store can get wrong: many claimers, its clock, its link, its rights."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from mam_core.errors import ConfigError, LockTimeout, MamError, StoreError
from mam_core.leases import LeaseTerms
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.store_urls import StoreUrl
from mam_core.stores import base, postgres, postgres_door, sql_text
from mam_core.stores.base import GateKind, Query
from mam_core.stores.postgres import PostgresDatabase
from mam_core.stores.sql_store import SqlStore
from tests.support.clock import FakeClock
from tests.support.jobs import LABEL, add, request
from tests.support.patience import eventually
from tests.support.postgres import own_server, program

Open = Callable[..., Registry]


@pytest.fixture
def open_registry(postgres_schema: str, tmp_path: Path) -> Iterator[Open]:
    """Handles on one registry, each with connections of its own, as another host would have."""
    opened: list[Registry] = []

    def made(uri: str = postgres_schema, **given: Any) -> Registry:
        database = PostgresDatabase(StoreUrl.parse(uri))
        store = SqlStore(database, str(tmp_path / "jobs"), str(tmp_path / "logs"), database.bell)
        opened.append(Registry(store, **{"actor": "ann", "node": "host", **given}))
        return opened[-1]

    yield made
    for registry in opened:
        registry.store.close()


@pytest.fixture
def registry(open_registry: Open) -> Registry:
    return open_registry()


def together(*acts: Callable[[], object]) -> None:
    problems: list[BaseException] = []

    def run(act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


class TestManyClaimers:
    def test_nobody_gets_a_job_twice(self, open_registry: Open) -> None:
        """C3, L2, fault 20: 16 handles, 200 jobs."""
        open_registry().register([request(f"job {i}") for i in range(200)])
        got: list[Job] = []

        def claim_all(own: Registry) -> None:
            while (job := own.claim(LABEL)) is not None:
                got.append(job)

        together(*(partial(claim_all, open_registry()) for _ in range(16)))
        assert Counter((job.job_id, job.attempt) for job in got) == Counter(
            {(row.job_id, 1): 1 for row in open_registry().store.find(Query())[0]}
        )

    def test_the_slots_of_a_group_hold_across_hosts(self, open_registry: Open) -> None:
        wanted = [request(f"{g} {i}", group=g) for i in range(20) for g in ("night", "day")]
        open_registry().register(wanted)
        got: list[Job] = []

        def claim_some(own: Registry) -> None:
            for _ in range(10):
                if (job := own.claim(LABEL)) is not None:
                    got.append(job)

        slots = {"night": 3, "day": 5}
        handles = [open_registry(slots=lambda: slots) for _ in range(8)]
        together(*(partial(claim_some, own) for own in handles))
        assert Counter(job.group for job in got) == {"night": 3, "day": 5}

    def test_one_key_is_one_job_whoever_registers_it(self, open_registry: Open) -> None:
        """Fault 24."""
        ids: list[str] = []

        def register(own: Registry) -> None:
            ids.append(own.register([request(key="nightly")])[0].job_id)

        together(*(partial(register, open_registry()) for _ in range(8)))
        assert len(set(ids)) == 1
        assert len(open_registry().store.find(Query())[0]) == 1

    def test_what_is_told_at_once_is_numbered_without_a_gap(self, open_registry: Open) -> None:
        """Promise 4: a worker's changes and a relay's lines."""
        registry = open_registry()
        job_id = add(registry)
        line = {"event": "published", "timestamp": "2026-06-19T09:30:00.000Z", "job_id": job_id}

        def tell(own: Registry) -> None:
            for number in range(15):
                assert own.store.audit.append(job_id, {**line, "seq": number})

        def change(own: Registry) -> None:
            for number in range(15):
                own.edit(job_id, {"priority": number + 1})

        tellers = [partial(tell, open_registry()) for _ in range(4)]
        together(*tellers, partial(change, open_registry()))
        told = list(registry.store.audit.events(job_id))
        assert [one["n"] for one in told] == list(range(1, 77))
        assert Counter(one["event"] for one in told)["edited"] == 15

    def test_a_pause_holds_everybody_back(self, open_registry: Open) -> None:
        one, other = open_registry(), open_registry()
        add(one)
        one.pause(GateKind.ALL)
        assert other.claim(LABEL) is None
        one.resume(GateKind.ALL)
        assert other.claim(LABEL) is not None


class TestTheClock:
    def test_hosts_whose_clocks_differ_agree_on_a_lease(self, open_registry: Open) -> None:
        """Fault 66: five minutes apart, each with a boot of its own."""
        slow, fast = FakeClock(boot="slow"), FakeClock(boot="fast")
        fast.pass_time(300)
        here = open_registry(clock=slow, node="here")
        there = open_registry(clock=fast, node="there")
        add(here)
        job = here.claim(LABEL, lease=LeaseTerms("worker", 200))
        assert job is not None
        assert job.lease is not None
        assert not here.lease_expired(job.lease)
        assert not there.lease_expired(job.lease)
        assert there.lease_age(job.lease) == pytest.approx(0, abs=100)
        slow.pass_time(3600)
        fast.pass_time(-7200)
        assert not there.lease_expired(job.lease), "only the server's clock counts"
        short = here.heartbeat(job.job_id, LeaseTerms("worker", 0.2), attempt=1).lease
        assert short is not None
        # Each reads the server's clock for itself, as exactly as its question travels.
        eventually(lambda: there.lease_expired(short), "it is over")
        eventually(lambda: here.lease_expired(short), "here, too")

    def test_is_not_believed_when_its_answer_was_slow(
        self, registry: Registry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By half of that time it may be wrong: a worker may have been stopped in between."""
        add(registry)
        monkeypatch.setattr(postgres, "_CLOCK_SEC", 0.0)
        monkeypatch.setattr(postgres, "_CLOCK", f"{postgres._CLOCK} FROM pg_sleep(0.2)")
        assert registry.store.now() is not None
        monkeypatch.setattr(postgres, "_TRIP_SEC", 0.1)
        with pytest.raises(StoreError, match="too long to date a lease"):
            registry.claim(LABEL, lease=LeaseTerms("worker", 30))

    def test_a_renewed_lease_is_dated_anew(self, registry: Registry) -> None:
        add(registry)
        job = registry.claim(LABEL, lease=LeaseTerms("worker", 30))
        assert job is not None
        assert job.lease is not None
        time.sleep(0.05)
        beat = registry.heartbeat(job.job_id, LeaseTerms("worker", 30), attempt=1)
        assert beat.lease is not None
        assert beat.lease.store_time is not None
        assert job.lease.store_time is not None
        assert beat.lease.store_time > job.lease.store_time


class TestWaiting:
    def test_for_a_stuck_process_ends_with_a_sentence(
        self, registry: Registry, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Fault 23."""
        job_id = add(registry)
        registry.store.close()
        monkeypatch.setattr(postgres_door, "PATIENCE_MS", 300)
        with psycopg.connect(postgres_schema) as stuck:
            stuck.execute("SELECT 1 FROM jobs FOR UPDATE")
            with pytest.raises(LockTimeout, match="another process has held"):
                registry.next_seq(job_id)
            assert registry.get(job_id).last_seq == 0, "readers do not wait"
            assert registry.claim(LABEL) is None, "a claim passes it over"
        assert registry.next_seq(job_id) == 1


class TestTheAuditLog:
    def test_that_fails_breaks_nothing(
        self, registry: Registry, postgres_schema: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Decision 18: behind a savepoint."""
        job_id = add(registry)
        with psycopg.connect(postgres_schema, autocommit=True) as db:
            db.execute("ALTER TABLE history_lines RENAME TO away")
        assert registry.claim(LABEL) is not None
        assert registry.get(job_id).status is Status.RUNNING
        assert "the audit log misses a line" in caplog.text
        assert not registry.store.audit.append(job_id, {"event": "x", "timestamp": ""})
        with psycopg.connect(postgres_schema, autocommit=True) as db:
            db.execute("ALTER TABLE away RENAME TO history_lines")
        registry.finish(job_id, Status.COMPLETED, attempt=1)
        assert [line["n"] for line in registry.store.audit.events(job_id)] == [1, 2]


class TestVersions:
    def test_a_newer_one_is_left_alone(self, open_registry: Open, postgres_schema: str) -> None:
        job_id = add(open_registry())
        with psycopg.connect(postgres_schema, autocommit=True) as db:
            db.execute("UPDATE mam_schema SET version = 99")
        with pytest.raises(StoreError, match="made by a newer mam"):
            open_registry().get(job_id)

    def test_a_step_that_is_cut_off_leaves_the_version_before(
        self, open_registry: Open, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Fault 9."""
        job_id = add(open_registry())
        statements = ["CREATE TABLE extra (a TEXT)", "THIS IS NO STATEMENT"]
        real = sql_text.step
        monkeypatch.setattr(postgres, "STEPS", (*sql_text.STEPS, "more.sql"))
        monkeypatch.setattr(
            postgres,
            "step",
            lambda n, d: real(n, d) if n < len(sql_text.STEPS) else ";".join(statements),
        )
        with pytest.raises(StoreError):
            open_registry().next_seq(job_id)
        with psycopg.connect(postgres_schema) as db:
            assert db.execute("SELECT version FROM mam_schema").fetchone() == (len(sql_text.STEPS),)
            assert db.execute("SELECT to_regclass('extra')").fetchone() == (None,)
        statements.pop()
        assert open_registry().next_seq(job_id) == 1

    def test_many_who_come_first_make_it_once(self, open_registry: Open) -> None:
        together(*(partial(add, open_registry()) for _ in range(8)))
        assert len(open_registry().store.find(Query())[0]) == 8


class TestTheServer:
    def test_that_is_killed_is_a_clear_error_and_then_all_goes_on(self, tmp_path: Path) -> None:
        with own_server() as server:
            database = PostgresDatabase(StoreUrl.parse(server.uri))
            store = SqlStore(database, str(tmp_path / "j"), str(tmp_path / "l"), database.bell)
            with Registry(store) as registry:
                job_id = add(registry)
                server.kill()
                with pytest.raises(StoreError, match=r"cannot be reached|lost|terminat"):
                    registry.next_seq(job_id)
                server.start()
                assert eventually(lambda: _next_seq(registry, job_id), "all goes on") == 1

    def test_that_is_not_there_is_said_without_the_password(self, open_registry: Open) -> None:
        registry = open_registry("postgresql://me:hush@127.0.0.1:1/jobs")
        with pytest.raises(StoreError, match="cannot be reached") as caught:
            registry.store.find(Query())
        chain: BaseException | None = caught.value
        while chain is not None:
            assert "hush" not in f"{chain} {chain.args}"
            chain = chain.__cause__

    def test_wants_a_password_file_that_is_ours_alone(
        self, postgres_schema: str, tmp_path: Path
    ) -> None:
        secret = tmp_path / "password"
        database = PostgresDatabase(StoreUrl.parse(postgres_schema), str(secret))
        with pytest.raises(ConfigError, match="no such file"):
            database.now()
        secret.write_text("hush\n")
        secret.chmod(0o644)
        with pytest.raises(ConfigError, match="can be read by other users"):
            database.now()
        secret.chmod(0o600)
        assert database.now() == pytest.approx(time.time(), abs=60)
        database.close()


@pytest.fixture
def login_as(postgres_server: str) -> Iterator[Callable[[str], str]]:
    """The url of a new login that has one of the roles of `roles.sql`, in a schema of the test."""
    schema = f"r{time.monotonic_ns()}"
    script = Path(postgres.__file__).with_name("roles.sql")
    for _ in range(2):  # again changes nothing
        words = [program("psql"), "-qX", "-v", "ON_ERROR_STOP=1", "-v", f"schema={schema}"]
        subprocess.run([*words, "-f", str(script), postgres_server], check=True)
    path = quote(f"-csearch_path={schema}")
    names: list[str] = []
    with psycopg.connect(postgres_server, autocommit=True) as admin:

        def made(role: str) -> str:
            name = f"{schema}_{len(names)}"
            admin.execute(f"CREATE ROLE {name} LOGIN IN ROLE {role}".encode())
            if role == "mam_owner":
                admin.execute(f"ALTER ROLE {name} SET role = {role}".encode())
            names.append(name)
            return f"{postgres_server.replace('user=postgres', f'user={name}')}&options={path}"

        try:
            yield made
        finally:
            admin.execute(f"DROP SCHEMA {schema} CASCADE".encode())
            for name in names:
                admin.execute(f"DROP ROLE {name}".encode())


class TestRights:
    def test_a_worker_needs_no_more_than_the_script_gives(
        self, open_registry: Open, login_as: Callable[[str], str]
    ) -> None:
        """`roles.sql`, tried as an administrator runs it."""
        owner, worker = login_as("mam_owner"), login_as("mam_worker")
        with pytest.raises(MamError, match=r"permission denied|no registry"):
            add(open_registry(worker))
        add(open_registry(owner))
        here = open_registry(worker)
        job = here.claim(LABEL)
        assert job is not None
        here.publish(job.job_id, "progress", detail="half")
        here.finish(job.job_id, Status.COMPLETED, attempt=1)
        here.archive([job.job_id])
        with psycopg.connect(worker) as db, pytest.raises(psycopg.Error):
            db.execute("DROP TABLE jobs")

    def test_a_silent_relay_of_another_login_is_seen_and_replaced(
        self,
        open_registry: Open,
        login_as: Callable[[str], str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Which may neither see since when its connection is silent nor end it."""
        add(open_registry(login_as("mam_owner")))
        one, two = (open_registry(login_as("mam_worker")).store.outbox for _ in range(2))
        with one.relaying() as mine:
            assert mine
            with two.relaying() as theirs:
                assert not theirs  # it has only just begun
            monkeypatch.setattr(base, "SILENT_SEC", 0.1)
            sign = eventually(lambda: (now := two.relay()) and now.is_silent and now, "silence")
            assert "login r" in sign.who
            with two.relaying() as theirs:
                assert theirs
                monkeypatch.undo()
                assert two.beat()
                assert not one.beat()
            monkeypatch.undo()


def _next_seq(registry: Registry, job_id: str) -> int:
    """0 while the server is not back."""
    with suppress(StoreError):
        return registry.next_seq(job_id)
    return 0
