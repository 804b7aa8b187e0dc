"""An index that is missing, damaged, in the way or impossible costs time, never an answer."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mam_core.errors import MamError, StoreError
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores import index, index_rows
from mam_core.stores.base import Query
from mam_core.stores.catalogue import Written
from tests.index.site import Site, assert_same, foreign_record, ids_of
from tests.support.clock import FakeClock
from tests.support.jobs import a_full_job, add

#: Damage that SQLite itself does not mind.
WRONG_CONTENT = (
    "DELETE FROM state",
    "UPDATE state SET looked_at = 'noon'",
    "UPDATE state SET look_took = 'long'",
    "UPDATE state SET seal = 'wax'",
    "INSERT INTO state SELECT * FROM state",
    "DELETE FROM made_for",
    "DROP TABLE state",
    "DROP TABLE jobs",
    "DROP TABLE prompts",
    "DROP TABLE parents",
    "DROP TABLE unreadable",
    "DROP TABLE made_for",
    "DROP INDEX claim_order",
)


def a_few(registry: Registry) -> list[str]:
    ids = [add(registry, f"job {i}", key=f"k{i}") for i in range(3)]
    assert registry.claim("alpha") is not None
    assert ids_of(registry) == sorted(ids)
    return ids


class TestDamage:
    @pytest.mark.parametrize("content", [b"", b"\0" * 9000, b"not a database at all\n" * 400])
    @pytest.mark.parametrize("name", ["jobs.sqlite", "jobs.sqlite-wal", "jobs.sqlite-shm"])
    def test_files_that_are_no_database_are_made_anew(
        self, site: Site, registry: Registry, name: str, content: bytes
    ) -> None:
        ids = a_few(registry)
        registry.store.close()
        (site.home / name).write_bytes(content)
        again = site.open()
        assert ids_of(again) == sorted(ids)
        again.request_cancel(ids[2])
        assert_same(site, again, site.open())

    @pytest.mark.parametrize("sql", WRONG_CONTENT)
    def test_a_database_with_wrong_content_answers_nothing_wrong_and_raises_nothing(
        self, site: Site, registry: Registry, sql: str
    ) -> None:
        """Issue 3: rebuilt when damaged. No traceback reaches a user."""
        ids = a_few(registry)
        db = sqlite3.connect(site.database)
        db.execute(sql)
        db.commit()
        db.close()
        assert ids_of(registry) == sorted(ids)
        registry.finish(ids[0], Status.COMPLETED, attempt=1)
        add(registry, "one more")
        site.wait_for_look()
        assert len(ids_of(registry)) == 4
        assert_same(site, registry, site.open())

    @pytest.mark.parametrize("column", ["status", "reason"])
    def test_a_word_that_nobody_knows_takes_no_list_down(
        self, site: Site, registry: Registry, column: str
    ) -> None:
        ids = a_few(registry)
        db = sqlite3.connect(site.database)
        db.execute(f"UPDATE jobs SET {column} = 'asleep'")
        db.commit()
        db.close()
        assert ids_of(registry) == sorted(ids)

    def test_a_handle_that_was_closed_opens_itself_again(
        self, site: Site, registry: Registry
    ) -> None:
        ids = a_few(registry)
        registry.store.close()
        assert ids_of(registry) == sorted(ids)
        registry.store.close()
        registry.request_cancel(ids[1])
        assert_same(site, registry)

    def test_a_handle_notices_that_another_made_the_index_anew(
        self, site: Site, registry: Registry
    ) -> None:
        a_few(registry)
        other = site.open()
        ids_of(other)
        shutil.rmtree(site.home)
        add(other, "made anew by this one")
        assert_same(site, registry, other)

    def test_a_connection_to_a_replaced_file_is_not_kept(
        self, site: Site, registry: Registry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Replaced between being found and being opened: its log would be another file's log.

        With the old file and the new one's log, what is read is a mixture, and a checkpoint takes
        the new index's rows into a file that nobody will ever open.
        """
        a_few(registry)
        registry.store.close()
        late = site.open()
        connect = sqlite3.connect

        def overtaken(place: Any, *args: Any, **kwargs: Any) -> Any:
            db = connect(place, *args, **kwargs)
            if str(place) == str(site.database):
                monkeypatch.setattr(sqlite3, "connect", connect)
                shutil.rmtree(site.home)
                for i in range(20):
                    add(registry, f"meanwhile {i}")
            return db

        monkeypatch.setattr(sqlite3, "connect", overtaken)
        assert len(ids_of(late)) == 23
        # Some 1,200 pages of rows, more than SQLite keeps in its log.
        long = {"prompt": "🜂" * 4000, "agent": "shell", "agent_session": "alpha"}
        late.register([long] * 300)
        add(late, "one more")
        assert_same(site, registry, late, site.open())


class TestInTheWay:
    """What stands where the index should be is left alone, and everything works by reading."""

    @pytest.fixture(params=["file", "link", "dangling", "pipe", "litter", "folder", "link inside"])
    def obstacle(self, request: pytest.FixtureRequest, site: Site, registry: Registry) -> list[str]:
        ids = a_few(registry)
        registry.store.close()
        shutil.rmtree(site.home)
        kinds: dict[str, Callable[[], object]] = {
            "file": lambda: site.home.write_text("mine"),
            "link": lambda: _linked(site.home, site.root / "elsewhere"),
            "dangling": lambda: site.home.symlink_to("nowhere"),
            "pipe": lambda: os.mkfifo(site.home),
            "litter": lambda: (site.home / "a folder").mkdir(parents=True),
            "folder": lambda: (site.database / "inside").mkdir(parents=True),
            "link inside": lambda: _linked_inside(site.database),
        }
        kinds[request.param]()
        return ids

    def test_lists_claims_and_registrations_go_on(
        self, site: Site, registry: Registry, obstacle: list[str]
    ) -> None:
        assert ids_of(registry) == sorted(obstacle)
        add(registry, "one more")
        job = registry.claim("alpha")
        assert job is not None
        assert job.job_id == obstacle[1]
        registry.finish(job.job_id, Status.COMPLETED, attempt=1)
        assert registry.archive([job.job_id])
        assert_same(site, registry)

    def test_nothing_outside_is_touched(
        self, site: Site, registry: Registry, obstacle: list[str]
    ) -> None:
        outside = site.root / "elsewhere"
        before = sorted(outside.iterdir()) if outside.exists() else []
        hostname = Path("/etc/hostname").read_bytes() if Path("/etc/hostname").exists() else b""
        registry.request_cancel(obstacle[2])
        ids_of(registry)
        assert (sorted(outside.iterdir()) if outside.exists() else []) == before
        assert not hostname or Path("/etc/hostname").read_bytes() == hostname

    def test_a_change_that_was_made_is_told_so_whatever_becomes_of_the_index(
        self, site: Site, registry: Registry
    ) -> None:
        """The record is in place; an index that can neither be written nor removed is no error."""
        ids = a_few(registry)
        (site.home / "a folder").mkdir()
        db = sqlite3.connect(site.database)
        db.execute("DROP TABLE jobs")
        db.commit()
        db.close()
        assert registry.request_cancel(ids[2]).status is Status.CANCELLED
        events = [line["event"] for line in registry.store.audit.events(ids[2])]
        assert events == ["registered", "status_changed"]
        assert_same(site, registry)


def _linked_inside(database: Path) -> None:
    database.parent.mkdir()
    database.symlink_to("/etc/hostname")


def _linked(home: Path, elsewhere: Path) -> None:
    elsewhere.mkdir()
    home.symlink_to(elsewhere)


class TestNoRoom:
    def test_an_index_that_cannot_be_filled_is_not_taken_for_an_empty_registry(
        self, site: Site, registry: Registry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An empty list would be believed; a second job with a live key would be registered."""
        ids = a_few(registry)
        shutil.rmtree(site.home)

        def full(*_: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(index, "write_rows", full)
        assert ids_of(registry) == sorted(ids)
        assert add(registry, key="k1") == ids[1]
        job = registry.claim("alpha")
        assert job is not None
        assert job.job_id == ids[1]
        assert_same(site, registry)

    def test_a_limit_on_file_sizes_is_no_limit_on_jobs(self, site: Site) -> None:
        """A real one: every record fits, their index does not."""
        for i in range(120):
            site.place.mkdir(mode=0o700, exist_ok=True)
            site.rename_in(f"job{i}", foreign_record(f"job{i}", prompt="x" * 3900))

        def work() -> Any:
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
            registry = site.open()
            listed = len(ids_of(registry))
            job = registry.claim("alpha")
            return [listed, job and job.job_id]

        assert in_a_child(work) == [120, "job0"]
        assert_same(site, site.open())


class TestWhatARowCannotHold:
    """Foreign records are legal JSON; that SQLite cannot keep a value must not hide the list."""

    @pytest.mark.parametrize("name", ["priority", "order", "attempt", "last_seq", "revision"])
    @pytest.mark.parametrize("value", [2**63 - 1, 2**63, 10**40])
    def test_big_numbers(self, site: Site, registry: Registry, name: str, value: int) -> None:
        """As a job or as unreadable, but listed; and whatever is claimed, everything goes on."""
        ours = add(registry)
        site.rename_in("big", foreign_record("big", **{name: value}))
        assert ids_of(registry) == sorted([ours, "big"])
        with suppress(MamError):  # a number that cannot grow any more may be a reason to refuse
            registry.claim("alpha")
        site.rename_in("big2", foreign_record("big2", **{name: -value}))
        assert ids_of(registry) == sorted([ours, "big", "big2"])
        assert_same(site, registry)

    def test_a_name_that_is_no_text(self, site: Site, registry: Registry) -> None:
        ours = add(registry)
        os.close(os.open(os.fsencode(site.place) + b"/caf\xe9.json", os.O_CREAT | os.O_WRONLY))
        assert len(ids_of(registry)) == 2
        registry.request_cancel(ours)
        assert_same(site, registry)
        os.unlink(os.fsencode(site.place) + b"/caf\xe9.json")
        assert_same(site, registry)

    @pytest.mark.parametrize("name", ["prompt", "agent_session", "agent", "group", "key", "model"])
    def test_half_a_character(self, site: Site, registry: Registry, name: str) -> None:
        """JSON can say \\ud800, UTF-8 cannot: the record is listed and can be claimed."""
        add(registry)
        text = "half \ud800 of one"
        site.rename_in("half", foreign_record("half", **{name: text}))
        assert "half" in ids_of(registry)
        wanted = text if name == "agent_session" else "alpha"
        job = registry.claim(wanted)
        assert job is not None
        assert (job.job_id, getattr(job, name)) == ("half", text)
        site.wait_for_look()
        assert {row.job_id for row in registry.store.find(Query(text="HALF"))[0]} == {"half"}

    def test_parents_that_are_no_ids(self, site: Site, registry: Registry) -> None:
        after = ["", "a b", "../x", "\ud800", "x" * 300]
        site.place.mkdir(mode=0o700)
        site.rename_in("odd", foreign_record("odd", after=after))
        assert ids_of(registry) == ["odd"]
        assert registry.claim("alpha") is None

    def test_inodes_beyond_63_bits(self) -> None:
        """Overlay and FUSE file systems make them up from hashes."""
        schema = Path(index.__file__).with_name("index.sql").read_text()
        db = sqlite3.connect(":memory:")
        db.executescript(schema)
        dates = {"st_mtime_ns": 1}
        state = os.stat_result((0o100600, 2**64 - 5, 1, 1, 0, 0, 100, 0, 0, 0), dates)
        index_rows.write_rows(db, [Written(a_full_job(), state)])
        assert db.execute("SELECT count(*) FROM jobs").fetchone() == (1,)
        db.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")
class TestRights:
    @pytest.fixture
    def open_site(self, clock: FakeClock) -> Iterator[Site]:
        """In a place that other users can reach."""
        root = Path(tempfile.mkdtemp(prefix="mam-index-"))
        root.chmod(0o777)
        site = Site(root, clock)
        yield site
        site.close()
        shutil.rmtree(root)

    def test_a_read_only_folder_is_listed(self, open_site: Site) -> None:
        """Its owner has taken his own right to write: reading goes on, writing says why not."""
        site = open_site

        def prepare() -> Any:
            registry = site.open()
            a_few(registry)
            registry.store.close()

        in_a_child(prepare, user=NOBODY)
        for mode, has_index in ((0o500, True), (0o500, False)):
            if not has_index:
                shutil.rmtree(site.home)
            site.place.chmod(mode)
            shown, refused = in_a_child(lambda: _list_and_register(site), user=NOBODY)
            assert len(shown) == 3
            assert "permission" in refused

    @pytest.mark.parametrize("folder_mode", [0o000, 0o500, 0o700])
    @pytest.mark.parametrize("file_mode", [0o000, 0o400, 0o600])
    def test_an_index_that_is_closed_to_us_is_done_without(
        self, open_site: Site, folder_mode: int, file_mode: int
    ) -> None:
        """Neither what it knew before is believed, nor is anything refused for its sake."""
        site = open_site

        def prepare() -> Any:
            registry = site.open()
            a_few(registry)
            reader = site.open()
            ids_of(reader)
            for path in site.home.iterdir():  # the log too, which an open handle keeps
                path.chmod(file_mode)
            site.home.chmod(folder_mode)
            site.rename_in("s1", foreign_record("s1"))
            return None

        in_a_child(prepare, user=NOBODY)
        shown, refused = in_a_child(lambda: _list_and_register(site), user=NOBODY)
        assert (len(shown), refused) == (5, "")
        assert "s1" in shown

    @pytest.mark.parametrize("index_open", [True, False])
    def test_somebody_elses_folder_is_listed_by_reading(
        self, open_site: Site, index_open: bool
    ) -> None:
        site = open_site
        registry = site.open()
        ids = a_few(registry)
        registry.store.close()
        for path in (site.place, *site.place.rglob("*")):
            if site.home not in (path, path.parent) or index_open:
                path.chmod(0o755 if path.is_dir() else 0o644)
        (site.place / ".lock").chmod(0o644)
        site.rename_in("s1", foreign_record("s1"))
        before = site.database.read_bytes()
        shown, refused = in_a_child(lambda: _list_and_register(site), user=NOBODY)
        assert shown == sorted([*ids, "s1"])
        assert "belongs to user 0" in refused
        assert site.database.read_bytes() == before

    def test_a_record_given_back_to_its_owner_can_be_read_again(
        self, site: Site, registry: Registry
    ) -> None:
        """Neither chown nor chmod changes a file's date or size."""
        job_id = add(registry)
        os.chown(site.file(job_id), NOBODY, NOBODY)
        os.utime(site.file(job_id))
        site.wait_for_look()
        assert [row.job_id for row in registry.store.unreadable()] == [job_id]
        os.chown(site.file(job_id), 0, 0)
        site.wait_for_look()
        assert_same(site, registry)

    def test_everything_in_it_is_private(self, site: Site, registry: Registry) -> None:
        """A19, decision 10: prompts stand in it."""
        before = os.umask(0)
        try:
            a_few(registry)
        finally:
            os.umask(before)
        modes = {path.name: path.stat().st_mode & 0o777 for path in site.home.iterdir()}
        assert site.home.stat().st_mode & 0o777 == 0o700
        assert set(modes.values()) == {0o600}


NOBODY = 65534


def _list_and_register(site: Site) -> list[Any]:
    registry = site.open()
    refused = ""
    try:
        add(registry, "one more")
    except StoreError as problem:
        refused = str(problem)
    return [ids_of(registry), refused]


def in_a_child(work: Callable[[], Any], user: int | None = None) -> Any:
    """What `work` answers in a process of its own, perhaps as another user."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            answer = json.dumps(["ok", work()])
        except MamError as problem:
            answer = json.dumps(["failed", str(problem)])
        except BaseException as problem:
            answer = json.dumps(["failed", repr(problem)])
        else:
            status = 0
        os.write(writer, answer.encode())
        os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        word, answer = json.loads(pipe.read())
    assert os.waitpid(pid, 0)[1] == 0, answer
    assert word == "ok"
    return answer
