"""What only the SQLite store can get wrong: its file, its waiting, its versions."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mam_core.errors import LockTimeout, NetworkFileSystem, RegistryGone, StoreError, UnsafePath
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores import mounts, sql_text, sqlite
from mam_core.stores.base import Query
from mam_core.stores.sql_base import Row, Values
from mam_core.stores.sqlite_talk import SqliteTalk
from mam_core.stores.sqlite_watch import SqliteWatch
from tests.support.jobs import add, request
from tests.support.patience import eventually
from tests.support.stores import sqlite as sqlite_at


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "jobs.sqlite"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with Registry(sqlite_at(tmp_path)(), actor="ann", node="host") as made:
        yield made


def pragma(place: Path, name: str) -> object:
    db = sqlite3.connect(place)
    try:
        return db.execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        db.close()


class TestTheFile:
    def test_is_in_wal_mode_and_every_commit_is_synced(
        self, registry: Registry, place: Path
    ) -> None:
        """L1, promise 1."""
        add(registry)
        assert pragma(place, "journal_mode") == "wal"
        with registry.store.transaction() as tx:
            db = tx._change._db  # type: ignore[attr-defined]  # the connection itself
            assert db.execute("PRAGMA synchronous").fetchone()[0] == 2

    def test_keeps_its_log_when_another_process_leaves(
        self, registry: Registry, place: Path, tmp_path: Path
    ) -> None:
        """The last one to leave removes the log, so each connection shows that it is there by a
        lock; a process loses all of its own when it closes any handle of the file."""

        def jobs_seen_by_another_process() -> int:
            words = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); "
            words += "print(*db.execute('SELECT count(*) FROM jobs').fetchone()); db.close()"
            command = [sys.executable, "-c", words, str(place)]
            return int(subprocess.run(command, capture_output=True, check=True).stdout)

        add(registry)
        with Registry(sqlite_at(tmp_path)(), actor="bob", node="host") as second:
            add(second)
            assert jobs_seen_by_another_process() == 2
            assert Path(f"{place}-wal").exists()
            add(registry)
            add(second)
            assert jobs_seen_by_another_process() == 4

    def test_is_ours_alone_whatever_the_umask(self, registry: Registry, place: Path) -> None:
        before = os.umask(0)
        try:
            add(registry)
        finally:
            os.umask(before)
        for suffix in ("", "-wal", "-shm"):
            state = os.stat(f"{place}{suffix}")
            assert stat.S_IMODE(state.st_mode) == 0o600

    @pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
    def test_is_never_reached_through_a_link(
        self, registry: Registry, place: Path, tmp_path: Path, suffix: str
    ) -> None:
        (tmp_path / "elsewhere").write_bytes(b"")
        Path(f"{place}{suffix}").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(UnsafePath):
            add(registry)
        assert (tmp_path / "elsewhere").read_bytes() == b""

    def test_is_refused_on_a_network_file_system(
        self, registry: Registry, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """L8."""
        monkeypatch.setattr(mounts, "file_system_of", lambda _: "nfs4")
        monkeypatch.setattr(mounts, "_known", set())
        with pytest.raises(NetworkFileSystem, match="network file system"):
            add(registry)
        assert not place.exists()

    def test_that_was_removed_is_not_made_anew_in_silence(
        self, registry: Registry, place: Path
    ) -> None:
        job_id = add(registry)
        for suffix in ("", "-wal", "-shm"):
            Path(f"{place}{suffix}").unlink(missing_ok=True)
        with pytest.raises(RegistryGone, match="was removed"):
            registry.next_seq(job_id)
        with pytest.raises(RegistryGone):
            add(registry)
        assert not place.exists()

    @pytest.mark.parametrize("content", [b"hello, this is a text " * 300, b"x"])
    def test_that_is_no_database_is_left_alone(
        self, registry: Registry, place: Path, content: bytes
    ) -> None:
        place.write_bytes(content)
        with pytest.raises(StoreError, match=r"jobs\.sqlite: it is (no SQLite database|damaged)"):
            add(registry)
        assert place.read_bytes() == content

    def test_of_another_program_is_left_alone(self, registry: Registry, place: Path) -> None:
        db = sqlite3.connect(place)
        db.execute("CREATE TABLE recipes (name TEXT)")
        db.close()
        with pytest.raises(StoreError, match="is a database of something else"):
            add(registry)
        with pytest.raises(StoreError, match="is a database of something else"):
            registry.store.find(Query())

    def test_is_checkpointed_after_a_bulk_load(self, registry: Registry, place: Path) -> None:
        registry.register([request(f"job {i}") for i in range(1500)])
        assert os.path.getsize(f"{place}-wal") == 0
        assert len(registry.store.find(Query())[0]) == 1500


class TestWaiting:
    def test_for_whoever_takes_up_the_log_of_one_that_was_killed(
        self, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Then even a look at the version is busy: found by the 640th kill of a thousand."""
        job_id = add(registry)
        busy = sqlite3.OperationalError("database is locked")
        busy.sqlite_errorcode = sqlite3.SQLITE_BUSY_RECOVERY
        troubles, really = iter([busy, busy]), sqlite._number

        def number(db: sqlite3.Connection, pragma: str) -> int:
            for trouble in troubles:
                raise trouble
            return really(db, pragma)

        monkeypatch.setattr(sqlite, "_number", number)
        with Registry(sqlite_at(tmp_path)(), actor="bob", node="host") as another:
            assert another.get(job_id).job_id == job_id

    def test_for_a_stuck_process_ends_with_a_sentence(
        self, registry: Registry, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """L6, fault 23."""
        job_id = add(registry)
        monkeypatch.setattr(sqlite, "PATIENCE_SEC", 0.3)
        other = sqlite3.connect(place, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LockTimeout, match="another process has held") as caught:
                registry.next_seq(job_id)
            assert "locked" not in str(caught.value)
            assert registry.get(job_id).last_seq == 0, "readers do not wait"
        finally:
            other.close()
        assert registry.next_seq(job_id) == 1

    def test_of_many_writers_for_one_another_loses_nothing(
        self, registry: Registry, tmp_path: Path
    ) -> None:
        """L6: with far more work than the patience would cover."""
        job_id = add(registry)
        numbers: list[int] = []
        problems: list[BaseException] = []

        def take() -> None:
            try:
                with Registry(sqlite_at(tmp_path)()) as own:
                    numbers.extend(own.next_seq(job_id) for _ in range(20))
            except BaseException as problem:
                problems.append(problem)

        threads = [threading.Thread(target=take) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        assert sorted(numbers) == list(range(1, 321))


class TestVersions:
    def test_a_newer_one_is_left_alone(self, registry: Registry, place: Path) -> None:
        job_id = add(registry)
        registry.store.close()
        db = sqlite3.connect(place)
        db.execute("PRAGMA user_version = 99")
        db.close()
        for act in (lambda: registry.get(job_id), lambda: registry.next_seq(job_id)):
            with pytest.raises(StoreError, match="made by a newer mam"):
                act()

    @pytest.mark.parametrize("breaks_at", [0, 1, 2])
    def test_a_step_that_is_cut_off_leaves_the_version_before(
        self,
        registry: Registry,
        place: Path,
        monkeypatch: pytest.MonkeyPatch,
        breaks_at: int,
    ) -> None:
        """Fault 9: old or new, never wiped."""
        job_id = add(registry)
        registry.store.close()
        statements = ["CREATE TABLE extra (a TEXT)", "ALTER TABLE jobs ADD COLUMN more TEXT"]
        real = sql_text.step

        def step(number: int, dialect: sql_text.Dialect) -> str:
            return real(number, dialect) if number == 0 else ";".join(statements)

        monkeypatch.setattr(sqlite, "STEPS", (*sql_text.STEPS, "more.sql"))
        monkeypatch.setattr(sqlite, "step", step)
        statements.insert(breaks_at, "THIS IS NO STATEMENT")
        with pytest.raises(StoreError):
            registry.next_seq(job_id)
        assert pragma(place, "user_version") == len(sql_text.STEPS)
        statements.pop(breaks_at)
        assert registry.next_seq(job_id) == 1
        assert pragma(place, "user_version") == len(sql_text.STEPS) + 1


def test_running_jobs_are_found_without_a_look_at_all_the_others(
    registry: Registry, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep asks for them every few seconds, however long the history is."""
    add(registry)
    asked: list[str] = []
    real = SqliteTalk.ask_for

    def noted(talk: SqliteTalk, sql: str, values: Values) -> list[Row]:
        asked.append(sql)
        return real(talk, sql, values)

    monkeypatch.setattr(SqliteTalk, "ask_for", noted)
    registry.store.find(Query(frozenset({Status.RUNNING})))
    with closing(sqlite3.connect(place)) as db:
        plan = str(db.execute(f"EXPLAIN QUERY PLAN {asked[0]}").fetchall())
    assert "USING INDEX running_jobs" in plan


def test_a_failing_audit_line_does_not_stop_the_change(
    registry: Registry, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """F13, F14, decision 18."""
    job_id = add(registry)
    db = sqlite3.connect(place)
    db.execute("ALTER TABLE history_lines RENAME TO away")
    db.close()
    job = registry.claim("alpha")
    assert job is not None
    assert registry.get(job_id).status is Status.RUNNING
    assert "the audit log misses a line" in caplog.text
    assert not registry.store.audit.append(job_id, {"event": "x", "timestamp": ""})


def test_a_child_process_does_not_use_its_parents_connection(
    registry: Registry, tmp_path: Path
) -> None:
    job_id = add(registry)
    assert registry.next_seq(job_id) == 1
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(registry.next_seq(job_id))
        finally:
            os._exit(99)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 2
    assert registry.next_seq(job_id) == 3


def test_a_commit_that_can_be_read_only_after_its_write_was_told_is_not_missed(
    tmp_path: Path,
) -> None:
    """Its sync comes between the two, and the kernel says nothing of the second."""
    is_readable = threading.Event()
    looks: list[int | None] = []

    def changed_since(number: int | None) -> tuple[int, dict[str, int]]:
        looks.append(number)
        return (8, {"late": 8}) if is_readable.is_set() else (7, {})

    log = tmp_path / "jobs.sqlite-wal"
    log.touch()
    watch = SqliteWatch(str(tmp_path / "jobs.sqlite"), changed_since, lambda: None)
    watch.start()
    try:
        watch.drain()
        before = len(looks)
        with log.open("ab") as file:
            file.write(b"a commit on its way to the disk")
        eventually(lambda: watch.drain() and len(looks) > before, "the write is told")
        while len(looks) > before:  # all that the kernel says of it
            before = len(looks)
            time.sleep(0.3)
            watch.drain()
        is_readable.set()
        eventually(lambda: "late" in watch.drain().stems, "it is found all the same")
    finally:
        watch.close()
