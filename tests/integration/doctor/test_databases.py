"""A doctor who looks at a registry in a database: each trouble is said with what mends it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from mam_core.config import load
from mam_core.doctor import store
from mam_core.doctor.findings import Check, Finding, Severity
from mam_core.doctor.ground import Ground, Look
from mam_core.doctor.place import there
from mam_core.operations.doctor import Area, mend
from mam_core.registry import Registry
from mam_core.store_urls import StoreUrl
from mam_core.stores import mounts, postgres_checkup, sqlite_checkup
from mam_core.wiring import store_at
from tests.support.jobs import add

CHECK = Check(Area.REGISTRY, "store", store.health, is_about_registry=False)
Open = Callable[[str], Ground]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    path = str(tmp_path / "jobs")
    with ExitStack() as stack:

        def made(url: str) -> Ground:
            registry = stack.enter_context(Registry(store_at(StoreUrl.parse(url), path)))
            return Ground(registry, path, load(environ={}))

        yield made


def found(ground: Ground, what: str) -> Finding:
    (one,) = [each for each in store.health(Look(ground)) if each.what == what]
    return one


def troubles(ground: Ground) -> list[str]:
    return [one.what for one in store.health(Look(ground)) if one.severity is not Severity.OK]


class TestSqlite:
    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        return tmp_path / "jobs.sqlite"

    @pytest.fixture
    def ground(self, opened: Open, place: Path) -> Ground:
        ground = opened(f"sqlite:{place}")
        add(ground.registry)
        return ground

    def test_that_is_well(self, ground: Ground, place: Path) -> None:
        assert troubles(ground) == []
        assert found(ground, "store").words == f"SQLite, {place}"
        assert found(ground, "schema").words == "version 2"
        assert "MiB" in found(ground, "write-ahead log").words

    def test_that_is_not_there_yet_is_not_made_by_looking(self, opened: Open, place: Path) -> None:
        ground = opened(f"sqlite:{place}")
        assert troubles(ground) == ["schema"]
        assert not place.exists()
        assert [one.severity for one in there(Look(ground))] == [Severity.OK]

    def test_that_others_may_read_is_made_ours(self, ground: Ground, place: Path) -> None:
        place.chmod(0o644)
        finding = found(ground, "permissions")
        assert finding.severity is Severity.WARNING
        assert mend(ground, CHECK, finding).is_done
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        # Our own connection has kept its lock: another one that leaves would remove its log.
        words = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); "
        words += "db.execute('SELECT 1 FROM jobs'); db.close()"
        subprocess.run([sys.executable, "-c", words, str(place)], check=True)
        assert Path(f"{place}-wal").exists()

    def test_with_a_long_log_is_folded(
        self, ground: Ground, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_checkup, "_LONG_LOG", 1)
        finding = found(ground, "write-ahead log")
        assert finding.severity is Severity.WARNING
        assert mend(ground, CHECK, finding).words == "it is empty now"
        assert os.stat(f"{place}-wal").st_size == 0

    def test_on_a_network_file_system(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """L8."""
        monkeypatch.setattr(mounts, "_known", set())
        monkeypatch.setattr(mounts, "file_system_of", lambda folder: "nfs4")
        finding = found(ground, "file system")
        assert finding.severity is Severity.PROBLEM
        assert "network file system" in finding.words
        assert "mam migrate" in finding.words

    def test_that_is_damaged(self, ground: Ground, place: Path) -> None:
        ground.registry.store.close()
        data = bytearray(place.read_bytes())
        data[4096:] = b"\xff" * (len(data) - 4096)
        place.write_bytes(data)
        finding = found(ground, "contents")
        assert finding.severity is Severity.PROBLEM

    def test_of_a_newer_mam(self, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sqlite_checkup, "STEPS", ("schema.sql",))
        finding = found(ground, "schema")
        assert finding.severity is Severity.PROBLEM
        assert "update mam" in finding.words


class TestPostgres:
    @pytest.fixture
    def ground(self, opened: Open, postgres_schema: str) -> Ground:
        ground = opened(postgres_schema)
        add(ground.registry)
        return ground

    def test_that_answers(self, ground: Ground) -> None:
        assert found(ground, "store").words.startswith("PostgreSQL ")
        assert found(ground, "schema").words == "version 2"
        assert found(ground, "clock").severity is Severity.OK
        assert found(ground, "link").words == "stays on this host"

    def test_with_an_almighty_login(self, ground: Ground) -> None:
        """The server of the tests gives its superuser."""
        finding = found(ground, "rights")
        assert finding.severity is Severity.WARNING
        assert "IN ROLE mam_worker" in finding.words

    def test_with_too_few_rights(self, ground: Ground, opened: Open, postgres_schema: str) -> None:
        with psycopg.connect(postgres_schema, autocommit=True) as db:
            ((schema,),) = db.execute("SELECT current_schema()").fetchall()
            role = f"few_{schema}"
            db.execute(f"CREATE ROLE {role} LOGIN".encode())
            db.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}".encode())
            db.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}".encode())
            try:
                lesser = opened(postgres_schema.replace("user=postgres", f"user={role}"))
                finding = found(lesser, "rights")
                assert finding.severity is Severity.PROBLEM
                assert "jobs (INSERT, UPDATE, DELETE)" in finding.words
                assert "roles.sql" in finding.words
                grant = f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}"
                db.execute(grant.encode())
                assert found(lesser, "rights").severity is Severity.OK
                lesser.registry.store.close()
            finally:
                db.execute(f"DROP OWNED BY {role}".encode())
                db.execute(f"DROP ROLE {role}".encode())

    def test_that_cannot_be_reached_is_said_without_the_password(self, opened: Open) -> None:
        ground = opened("postgresql://ann:s3cret-canary@127.0.0.1:1/none")
        finding = found(ground, "store")
        assert finding.severity is Severity.PROBLEM
        assert "cannot be reached" in finding.words
        assert "s3cret-canary" not in finding.words

    def test_whose_clock_is_not_ours(self, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postgres_checkup, "_wall", lambda: time.time() + 300)
        finding = found(ground, "clock")
        assert finding.severity is Severity.WARNING
        assert "300.0 s ahead of the database" in finding.words
        assert "NTP" in finding.words

    def test_before_the_first_job(self, opened: Open, postgres_schema: str) -> None:
        ground = opened(postgres_schema)
        assert "the first job makes them" in found(ground, "schema").words
