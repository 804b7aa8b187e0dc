"""The seal: whether a stranger has touched the folder since the index saw it all.

Two changes in one clock tick bear one date, so dates alone prove nothing; a
folder can be copied, restored, moved, and clocks can be set (decision 31).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mam_core.disk import Folder
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores import index
from tests.index.site import Site, assert_same, foreign_record, ids_of
from tests.support.clock import FakeClock
from tests.support.jobs import add


class Dated:
    """The state of a file with another date."""

    def __init__(self, state: os.stat_result, mtime_ns: int) -> None:
        self._state = state
        self.st_mtime_ns = mtime_ns

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


@pytest.fixture
def one_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if everything happened within one tick of the kernel's clock, some milliseconds long.

    Whatever changes in a folder, its date stays; one that is set by hand is kept.
    """
    fstat, utime = os.fstat, os.utime
    tick = time.time_ns()
    by_hand: set[int] = set()

    def set_by_hand(path: Any, *args: Any, **kwargs: Any) -> None:
        utime(path, *args, **kwargs)
        by_hand.add(os.stat(path).st_mtime_ns)

    def in_one_tick(fd: int) -> Any:
        state = fstat(fd)
        if stat.S_ISDIR(state.st_mode) and state.st_mtime_ns not in by_hand:
            return Dated(state, tick)
        return state

    monkeypatch.setattr(os, "utime", set_by_hand)
    monkeypatch.setattr(os, "fstat", in_one_tick)


@pytest.fixture(params=["fine dates", "one tick"])
def dates(request: pytest.FixtureRequest) -> None:
    """The kernel's dates as they are here, and as coarse as they are elsewhere."""
    if request.param == "one tick":
        request.getfixturevalue("one_tick")


@pytest.fixture(params=["disk", "memory"])
def roomy(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Site]:
    """A site on a real disk, and one on a tmpfs: their kernels' dates are of different makes."""
    if request.param == "disk":
        root = tmp_path
    else:
        shared = Path("/dev/shm")
        if not os.access(shared, os.W_OK):
            pytest.skip("this machine has no file system in memory")
        root = shared / f"mam-test-{os.getpid()}-{os.urandom(4).hex()}"
        root.mkdir(mode=0o700)
    site = Site(root, clock)
    yield site
    site.close()
    if request.param == "memory":
        shutil.rmtree(root)


def looked_at(site: Site) -> float:
    """When the index last looked at every file, by its own clock."""
    db = sqlite3.connect(site.database)
    try:
        when: float = db.execute("SELECT looked_at FROM state").fetchone()[0]
        return when
    finally:
        db.close()


def sealed(site: Site) -> tuple[Registry, str]:
    """A handle, and the id of its one job; the index has seen all there is."""
    registry = site.open()
    job_id = add(registry)
    assert ids_of(registry) == [job_id]
    return registry, job_id


class Stranger:
    """Renames a record in, once, when called."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.job_id = ""

    def __call__(self) -> None:
        if not self.job_id:
            self.job_id = "stranger1"
            self._site.rename_in(self.job_id, foreign_record(self.job_id))


@pytest.mark.usefixtures("dates")
class TestAStrangersRename:
    def test_is_seen_by_the_next_question_however_quick_it_follows(self, roomy: Site) -> None:
        """New, replaced, removed, each right after a look: in one tick or not, none is missed.

        A kernel that dates new names finely need not do so for removals: a tmpfs does not.
        """
        registry, ours = sealed(roomy)
        for i in range(20):
            roomy.rename_in(f"s{i}", foreign_record(f"s{i}"))
            assert len(ids_of(registry)) == i + 2, f"change {i}"
        for i in range(20):
            record = foreign_record(f"s{i}", status="completed", agent_session="beta")
            roomy.rename_in(f"s{i}", record)
            assert_same(roomy, registry)
        for i in range(20):
            roomy.file(f"s{i}").unlink()
            assert len(ids_of(registry)) == 20 - i, f"removal {i}"
        assert ids_of(registry) == [ours]

    def test_between_two_of_our_changes_is_seen(self, roomy: Site) -> None:
        """The second change asks the index nothing; it must not seal over what it did not see."""
        registry, one = sealed(roomy)
        two = add(registry)
        stranger = Stranger(roomy)
        registry.request_cancel(one)
        stranger()
        registry.request_cancel(two)
        assert stranger.job_id in ids_of(registry)
        assert_same(roomy, registry)

    def test_over_a_record_of_ours_is_seen(self, roomy: Site) -> None:
        registry, one = sealed(roomy)
        two = add(registry)
        roomy.rename_in(one, foreign_record(one, agent_session="beta"))
        registry.request_cancel(two)
        assert_same(roomy, registry)

    @pytest.mark.parametrize("what", ["file", "folder"])
    def test_while_our_change_is_synced_is_seen(
        self, roomy: Site, monkeypatch: pytest.MonkeyPatch, what: str
    ) -> None:
        """A sync takes milliseconds, an eternity for a script that renames."""
        registry, job_id = sealed(roomy)
        stranger = Stranger(roomy)
        fsync = os.fsync

        def disturbed(fd: int) -> None:
            if stat.S_ISDIR(os.stat(fd).st_mode) is (what == "folder"):
                stranger()
            fsync(fd)

        monkeypatch.setattr(os, "fsync", disturbed)
        registry.request_cancel(job_id)
        assert stranger.job_id
        assert stranger.job_id in ids_of(registry)
        assert_same(roomy, registry)

    def test_while_a_batch_is_synced_is_seen(
        self, roomy: Site, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        registry, _ = sealed(roomy)
        stranger = Stranger(roomy)
        sync_all = Folder.sync_all

        def disturbed(folder: Folder) -> None:
            stranger()
            sync_all(folder)

        monkeypatch.setattr(Folder, "sync_all", disturbed)
        batch = [
            {"prompt": str(i), "agent": "shell", "agent_session": "alpha"}
            for i in range(index_bulk())
        ]
        registry.register(batch)
        assert stranger.job_id
        assert stranger.job_id in ids_of(registry)

    @pytest.mark.parametrize("statement", ["BEGIN", "UPDATE"])
    def test_while_the_index_is_written_is_seen(
        self, roomy: Site, monkeypatch: pytest.MonkeyPatch, statement: str
    ) -> None:
        registry, job_id = sealed(roomy)
        stranger = Stranger(roomy)
        other = _disturbed_handle(roomy, monkeypatch, statement, stranger)
        other.request_cancel(job_id)
        assert stranger.job_id
        assert stranger.job_id in ids_of(registry)

    @pytest.mark.parametrize("statement", ["SELECT job_id", "BEGIN", "UPDATE"])
    def test_while_the_index_looks_is_seen(
        self, roomy: Site, monkeypatch: pytest.MonkeyPatch, statement: str
    ) -> None:
        """Sealed before it is read: what comes in behind the reader's back breaks the seal."""
        registry, _ = sealed(roomy)
        stranger = Stranger(roomy)
        other = _disturbed_handle(roomy, monkeypatch, statement, stranger)
        roomy.wait_for_look()
        ids_of(other)
        assert stranger.job_id
        assert stranger.job_id in ids_of(registry)


def _disturbed_handle(
    site: Site, monkeypatch: pytest.MonkeyPatch, statement: str, stranger: Stranger
) -> Registry:
    """A handle beside which the stranger acts when it gives its index this command."""
    connect = sqlite3.connect

    def watched(*args: Any, **kwargs: Any) -> Any:
        db = connect(*args, **kwargs)
        db.set_trace_callback(lambda sql: stranger() if sql.startswith(statement) else None)
        return db

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", watched)
        handle = site.open()
        # Connected by a question that needs neither a look nor a change.
        handle.refusals(site.a_job())
    return handle


@pytest.mark.usefixtures("one_tick")
class TestTheMomentOfSealing:
    """Where the kernel's dates cannot be trusted, we set one: strangers just before and after."""

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_stranger_in_that_very_moment_is_found_by_the_periodic_look(
        self, site: Site, monkeypatch: pytest.MonkeyPatch, when: str
    ) -> None:
        """Between our last look at the date and our own: a microsecond that nothing closes."""
        registry, job_id = sealed(site)
        stranger = Stranger(site)
        utime = os.utime

        def disturbed(*args: Any, **kwargs: Any) -> None:
            if when == "before":
                stranger()
            utime(*args, **kwargs)
            stranger()

        monkeypatch.setattr(os, "utime", disturbed)
        registry.request_cancel(job_id)
        monkeypatch.setattr(os, "utime", utime)
        assert stranger.job_id
        site.wait_for_look()
        assert stranger.job_id in ids_of(registry)
        assert_same(site, registry)

    def test_a_stranger_right_behind_the_seal_breaks_it(
        self, site: Site, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The date that we read back is then his, and must not be taken for ours."""
        registry, job_id = sealed(site)
        utime = os.utime
        strangers: list[str] = []

        def disturbed(*args: Any, **kwargs: Any) -> None:
            utime(*args, **kwargs)
            name = f"behind{len(strangers)}"
            site.rename_in(name, foreign_record(name))
            strangers.append(name)

        monkeypatch.setattr(os, "utime", disturbed)
        registry.request_cancel(job_id)
        monkeypatch.setattr(os, "utime", utime)
        assert strangers
        assert set(strangers) < set(ids_of(registry))


@pytest.mark.parametrize("seconds", [1, 2])
def test_a_file_system_that_keeps_whole_seconds_only_is_enough(
    site: Site, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """Also what we set by hand is cut there."""
    fstat, utime = os.fstat, os.utime
    grain = seconds * 10**9

    def cut(path: Any, *, ns: tuple[int, int]) -> None:
        utime(path, ns=(ns[0] // grain * grain, ns[1] // grain * grain))

    def coarse(fd: int) -> Any:
        state = fstat(fd)
        return Dated(state, state.st_mtime_ns // grain * grain)

    monkeypatch.setattr(os, "utime", cut)
    monkeypatch.setattr(os, "fstat", coarse)
    registry = site.open()
    for i in range(5):
        job_id = add(registry)
        site.rename_in(f"s{i}", foreign_record(f"s{i}"))
        registry.request_cancel(job_id)
        assert len(ids_of(registry)) == 2 * i + 2
        registry.request_cancel(add(registry))
        site.file(job_id).unlink()
        assert len(ids_of(registry)) == 2 * i + 2
        assert_same(site, registry)


class TestNoNeedlessLook:
    """Every look costs as much as there are files."""

    def test_our_own_changes_need_none(self, site: Site, registry: Registry) -> None:
        other = site.open()
        ids = [add(registry), add(other), add(registry)]
        ids_of(registry)
        before = looked_at(site)
        site.looks.pass_time(1)
        for handle in (registry, other, registry):
            handle.claim("alpha")
        for job_id in ids:
            other.finish(job_id, Status.COMPLETED, attempt=1)
            registry.get(job_id)
        registry.register([{"prompt": "p", "agent": "a", "agent_session": "s"}] * 20)
        ids_of(other)
        assert looked_at(site) == before

    def test_what_a_handle_read_before_others_wrote_costs_nobody_one(
        self, site: Site, registry: Registry
    ) -> None:
        """The console lists all day, and now and then its operator cancels something."""
        job_id = add(registry)
        other = site.open()
        ids_of(registry)
        before = looked_at(site)
        site.looks.pass_time(1)
        ids_of(registry)  # it remembers this seal …
        add(other)  # … which is no longer the folder's
        registry.request_cancel(job_id)
        ids_of(other)
        assert looked_at(site) == before

    def test_a_moved_folder_keeps_its_index(self, site: Site, registry: Registry) -> None:
        add(registry)
        ids_of(registry)
        made = site.database.stat().st_ino
        before = looked_at(site)
        registry.store.close()
        moved = Site(site.root / "elsewhere", site.clock)
        moved.root.mkdir()
        site.place.rename(moved.place)
        moved.looks.pass_time(1)
        assert_same(moved, moved.open())
        assert (moved.database.stat().st_ino, looked_at(moved)) == (made, before)
        moved.close()


class TestTimeAndPlace:
    @pytest.mark.parametrize("step", [-3600, 3600])
    def test_a_step_of_the_wall_clock_hides_nothing(
        self, site: Site, registry: Registry, monkeypatch: pytest.MonkeyPatch, step: float
    ) -> None:
        ids_of(registry)
        add(registry)
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + step)
        site.clock.wall += step
        job_id = add(registry)
        site.rename_in("s1", foreign_record("s1"))
        assert len(ids_of(registry)) == 3
        registry.request_cancel(job_id)
        monkeypatch.setattr(time, "time", real)
        site.rename_in("s2", foreign_record("s2"))
        assert len(ids_of(registry)) == 4
        assert_same(site, registry)

    def test_a_folder_that_a_stranger_dates_with_anything_is_looked_at(
        self, site: Site, registry: Registry
    ) -> None:
        job_id = add(registry)
        for date in (0, 1, -1, 10**18, 2**62):
            registry.request_cancel(add(registry))
            name = f"s{abs(date)}"[:12]
            site.rename_in(name, foreign_record(name))
            os.utime(site.place, ns=(date, date))
            assert name in ids_of(registry)
        assert job_id in ids_of(registry)

    @pytest.mark.parametrize("date", [0, -1])
    def test_no_date_looks_like_a_broken_seal(
        self, site: Site, monkeypatch: pytest.MonkeyPatch, date: int
    ) -> None:
        """Our change meets a stranger's, so the seal is broken; then the folder is dated 1970."""
        registry, job_id = sealed(site)
        stranger = Stranger(site)
        fsync = os.fsync

        def disturbed(fd: int) -> None:
            stranger()
            fsync(fd)

        monkeypatch.setattr(os, "fsync", disturbed)
        registry.request_cancel(job_id)
        os.utime(site.place, ns=(date, date))
        assert stranger.job_id in ids_of(registry)

    def test_a_boot_clock_that_runs_backwards_looks_again(
        self, site: Site, registry: Registry
    ) -> None:
        job_id = add(registry)
        ids_of(registry)
        site.edit_in_place(job_id, agent_session="beta")
        site.looks.up -= 500
        assert_same(site, registry)

    def test_a_copy_has_an_index_of_its_own(self, site: Site, registry: Registry) -> None:
        """`cp -a` brings the index along, with inodes and a folder that are not its own."""
        ids = [add(registry), add(registry)]
        ids_of(registry)
        copy = Site(site.root / "copy", site.clock)
        copy.root.mkdir()
        shutil.copytree(site.place, copy.place)
        shutil.copystat(site.place, copy.place)
        copied = copy.open()
        copied.request_cancel(ids[0])
        site.rename_in("s1", foreign_record("s1"))
        assert_same(copy, copied)
        assert_same(site, registry)
        copy.close()

    @pytest.mark.parametrize("with_index", [True, False])
    @pytest.mark.parametrize("in_place", [True, False])
    def test_a_backup_put_back_over_the_folder_is_seen(
        self, site: Site, registry: Registry, with_index: bool, in_place: bool
    ) -> None:
        """With all of its old dates, the folder's too, and a record more than the backup had."""
        ids = [add(registry, f"job {i}") for i in range(3)]
        registry.claim("alpha")
        ids_of(registry)
        registry.store.close()
        backup = site.root / "backup"
        shutil.copytree(site.place, backup)
        date = site.place.stat().st_mtime_ns
        registry.claim("alpha")
        registry.request_cancel(ids[2])
        late = add(registry, "after the backup")
        ids_of(registry)
        registry.store.close()
        for name in os.listdir(backup):
            if name.endswith(".json"):
                (shutil.copy2 if in_place else _put_back)(backup / name, site.place / name)
        if with_index:
            shutil.rmtree(site.home)
            shutil.copytree(backup / site.home.name, site.home)
        os.utime(site.place, ns=(date, date))
        site.wait_for_look()
        assert late in ids_of(registry)
        assert_same(site, registry)


def _put_back(source: Path, target: Path) -> None:
    target.unlink()
    shutil.copy2(source, target)


class TestAnotherMaking:
    @pytest.mark.parametrize("cause", ["boot", "version", "folder"])
    def test_an_index_that_was_made_for_something_else_is_made_anew(
        self, site: Site, registry: Registry, monkeypatch: pytest.MonkeyPatch, cause: str
    ) -> None:
        """After a power cut the index may hold anything: it is not synced, so not believed."""
        ids = [add(registry), add(registry)]
        ids_of(registry)
        registry.store.close()
        db = sqlite3.connect(site.database)
        db.execute("DELETE FROM jobs")
        db.commit()
        db.close()
        changes: dict[str, Callable[[], object]] = {
            "boot": lambda: site.looks.reboot(),
            "version": lambda: monkeypatch.setattr(index, "VERSION", index.VERSION + 1),
            "folder": lambda: shutil.copytree(site.place, site.root / "other"),
        }
        changes[cause]()
        if cause == "folder":
            registry.store.close()
            shutil.rmtree(site.place)
            date = (site.root / "other").stat().st_mtime_ns
            (site.root / "other").rename(site.place)
            os.utime(site.place, ns=(date, date))
        elif cause == "boot":
            site.looks.up = 1000.0
        assert ids_of(site.open()) == sorted(ids)
        assert_same(site, site.open())


def index_bulk() -> int:
    """So many that they are synced as one."""
    from mam_core.stores.commit import BULK

    return BULK
