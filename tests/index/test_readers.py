"""A reader waits for nobody and never sees half of anything: processes, threads, forks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mam_core.disk import Folder
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores import lock
from mam_core.stores.base import Query
from mam_core.wiring import open_registry
from tests.index.site import Site, assert_same, foreign_record, ids_of
from tests.support.children import Child, child
from tests.support.jobs import add

HOLDER = """
import sys
from mam_core.wiring import open_registry
registry = open_registry(sys.argv[1])
with registry.store.transaction() as tx:
    tx.last_order()
    print("holding", flush=True)
    sys.stdin.readline()
"""

#: Needs three seconds to read all files, most of them asleep; says so by a dot for each.
LOOKS_SLOWLY = """
import os, sys, time
from mam_core.stores import lock
from mam_core.stores.base import Query
from mam_core.wiring import open_registry
lock.PATIENCE_SEC = 1.0
registry = open_registry(sys.argv[1])
dots = os.open(sys.argv[2], os.O_WRONLY)
def dawdle(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".json"):
        time.sleep(0.01)
        os.write(dots, b".")
sys.addaudithook(dawdle)
print("looking", flush=True)
print(len(registry.store.find(Query())[0]), flush=True)
"""

#: Stops itself as it begins to read the folder, to bring the index up to date.
STOPS_WHILE_LOOKING = """
import os, signal, sys
from mam_core.stores.base import Query
from mam_core.wiring import open_registry
registry = open_registry(sys.argv[1])
place = os.stat(sys.argv[1])
def stop(event, arguments):
    if event in ("os.scandir", "os.listdir") and isinstance(arguments[0], int):
        here = os.fstat(arguments[0])
        if (here.st_dev, here.st_ino) == (place.st_dev, place.st_ino):
            os.kill(os.getpid(), signal.SIGSTOP)
sys.addaudithook(stop)
registry.store.find(Query())
"""

TRIES_TO_WRITE = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    db.execute("BEGIN IMMEDIATE")
    print("got it")
except sqlite3.OperationalError as problem:
    print(problem)
"""

START = """
import sys, time
from mam_core.records import Status
from mam_core.stores.base import Query
from mam_core.wiring import open_registry
registry = open_registry(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
"""
WRITES = (
    START
    + """
for i in range(60):
    registry.register([{"prompt": f"job {i}", "agent": "shell", "agent_session": "alpha"}])
    job = registry.claim("alpha")
    registry.finish(job.job_id, Status.COMPLETED, attempt=job.attempt)
print("done")
"""
)
#: A job that was there stays there, and no status goes back.
READS = (
    START
    + """
STEPS = ["pending", "running", "completed"]
seen = {}
while True:
    found, unreadable = registry.store.find(Query())
    assert not unreadable, unreadable
    now = {row.job_id: STEPS.index(row.status) for row in found}
    assert len(now) == len(found), "twice in one list"
    lost = seen.keys() - now.keys()
    assert not lost, f"lost {lost}"
    back = [job_id for job_id in seen if now[job_id] < seen[job_id]]
    assert not back, f"gone back {back}"
    seen = now
    if len(seen) == 121 and min(seen.values()) == 2:
        break
    time.sleep(0.005)  # the writers share two cores with us
print("done")
"""
)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "jobs")


def stopped(one: Child) -> None:
    """Wait until it has stopped itself."""
    _, status = os.waitpid(one.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)


class TestTheLockIsHeld:
    @pytest.mark.parametrize("asleep", [False, True])
    def test_a_list_shows_the_last_state_at_once(self, place: str, asleep: bool) -> None:
        """O16: not even a holder that is stopped, and will never let go, is waited for."""
        with open_registry(place) as registry:
            ids = [add(registry), add(registry)]
            ids_of(registry)
            with child(HOLDER, place) as holder:
                assert holder.hear() == "holding"
                if asleep:
                    os.kill(holder.pid, signal.SIGSTOP)
                assert ids_of(registry) == sorted(ids)
                assert registry.refusals(ids[0]) == []
                with open_registry(place) as fresh:
                    assert ids_of(fresh) == sorted(ids)
                    shutil.rmtree(Path(place) / ".index")
                    (Path(place) / "s1.json").write_bytes(foreign_record("s1"))
                    assert ids_of(fresh) == sorted([*ids, "s1"]), "no index: the files are read"
                assert holder.process.poll() is None

    def test_an_index_in_the_making_is_not_taken_for_an_empty_registry(self, place: str) -> None:
        """Rebuilding takes seconds with 100,000 jobs; all that time a list must show them."""
        with open_registry(place) as registry:
            ids = [add(registry, f"job {i}") for i in range(3)]
            ids_of(registry)
            shutil.rmtree(Path(place) / ".index")
            with child(STOPS_WHILE_LOOKING, place) as builder:
                stopped(builder)
                assert ids_of(registry) == sorted(ids)
                with open_registry(place) as fresh:
                    assert ids_of(fresh) == sorted(ids)
                    assert len(list(fresh.store.bodies(Query()))) == 3
            assert ids_of(registry) == sorted(ids), "the builder was killed"

    def test_a_long_look_costs_nobody_his_patience(
        self, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Rebuilding 60,000 rows took 12 s where this was measured, and patience is 5 s.

        Who works shows it, and is waited for; who is stopped or stuck is not. Who waits has the
        clock of who works, so that nothing that holds both of them up counts.
        """
        dots = tmp_path / "dots"
        dots.touch()
        waiting = SimpleNamespace(
            monotonic=lambda: dots.stat().st_size * 0.01,
            monotonic_ns=time.monotonic_ns,
            sleep=time.sleep,
        )
        with open_registry(place) as registry:
            add(registry, agent_session="beta")
            for i in range(300):
                (Path(place) / f"s{i}.json").write_bytes(foreign_record(f"s{i}"))
            shutil.rmtree(Path(place) / ".index", ignore_errors=True)
            monkeypatch.setattr(lock, "PATIENCE_SEC", 1.0)
            with child(LOOKS_SLOWLY, place, str(dots)) as reader:
                assert reader.hear() == "looking"
                while (Path(place) / ".lock").stat().st_size == 0:
                    assert reader.process.poll() is None
                monkeypatch.setattr(lock, "time", waiting)
                assert registry.claim("alpha") is not None
                assert reader.hear() == "301"

    def test_whoever_looks_dies_and_the_next_one_goes_on(self, place: str) -> None:
        with open_registry(place) as registry:
            ids = [add(registry, f"job {i}") for i in range(3)]
            shutil.rmtree(Path(place) / ".index", ignore_errors=True)
            with child(STOPS_WHILE_LOOKING, place) as builder:
                stopped(builder)
                builder.kill()
                job = registry.claim("alpha")
                assert job is not None
                assert job.job_id == ids[0]
            assert ids_of(registry) == sorted(ids)


def test_four_readers_and_two_writers_never_see_half_a_state(place: str) -> None:
    """Nothing vanishes from a list, stands in it twice, or goes back to an earlier status."""
    with open_registry(place) as registry:
        job_id = add(registry, agent_session="first")
        registry.set_status(job_id, Status.COMPLETED)
        ids_of(registry)
    children = [Child(WRITES, place) for _ in range(2)] + [Child(READS, place) for _ in range(4)]
    try:
        for one in children:
            assert one.hear() == "ready"
        for one in children:
            one.tell()
        printed = [one.process.communicate(timeout=100)[0].strip() for one in children]
        assert printed == ["done"] * 6
    finally:
        for one in children:
            one.end()


class TestThreads:
    def test_share_a_handle_and_each_sees_everything(self, site: Site, registry: Registry) -> None:
        """The console reads in worker threads while its operator acts in others."""
        failures: list[str] = []
        acknowledged: list[str] = []
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                before = len(acknowledged)
                shown = set(ids_of(registry))
                missing = set(acknowledged[:before]) - shown
                if missing:
                    failures.append(f"{len(missing)} of {before} are missing")
                done.wait(0.002)

        def write() -> None:
            for i in range(30):
                job_id = add(registry, f"job {i}")
                acknowledged.append(job_id)
                registry.claim("alpha")

        writers = _threads(write, 2, failures)
        readers = _threads(read, 4, failures)
        for i in range(6):  # and now and then it must be made anew
            shutil.rmtree(site.home, ignore_errors=True)
            writers[i % 2].join(0.05)
        for thread in writers:
            thread.join()
        done.set()
        for thread in readers:
            thread.join()
        assert not failures, failures[:3]
        assert len(acknowledged) == 60
        assert_same(site, registry, site.open())

    def test_list_a_folder_at_the_same_time_and_each_lists_all_of_it(self, tmp_path: Path) -> None:
        """One open folder has one place in its list of names; sharing it, each gets a part."""
        for i in range(1500):
            (tmp_path / f"job{i}.json").touch()
        counted: list[int] = []
        with Folder.open(str(tmp_path)) as folder:

            def count() -> None:
                counted.extend(len(folder.names()) for _ in range(30))

            for thread in _threads(count, 3, []):
                thread.join()
        assert set(counted) == {1500}

    def test_reading_the_folder_meanwhile_leaves_no_gap_in_the_index(
        self, site: Site, registry: Registry
    ) -> None:
        """A gap would be sealed, and stay until the next periodic look."""
        add(registry)
        for i in range(1500):
            (site.place / f"empty{i}.json").touch()
        done = threading.Event()
        # The handle that all threads share, which the protocol rightly does not show.
        folder = registry.store._open()  # type: ignore[attr-defined]  # only the files store has a folder

        def read() -> None:
            while not done.is_set():
                folder.names()

        readers = _threads(read, 2, [])
        shown = []
        for _ in range(4):
            shutil.rmtree(site.home, ignore_errors=True)
            shown.append(len(ids_of(registry)))
        done.set()
        for thread in readers:
            thread.join()
        assert shown == [1501] * 4

    def test_opening_the_index_in_one_takes_no_lock_from_another(
        self, site: Site, registry: Registry
    ) -> None:
        """POSIX: whoever closes a file lets go of every lock that his process has on it."""
        add(registry)
        ids_of(registry)
        held = sqlite3.connect(site.database, isolation_level=None)
        try:
            held.execute("BEGIN IMMEDIATE")
            ids_of(site.open())
            with child(TRIES_TO_WRITE, str(site.database)) as other:
                assert other.hear() == "database is locked"
        finally:
            held.close()


class TestAFork:
    def test_both_sides_go_on_with_the_handle_that_they_had(
        self, site: Site, registry: Registry
    ) -> None:
        """SQLite's connections and the kernel's locks are not to be shared; ours are made anew."""
        for i in range(20):
            add(registry, f"job {i}")
        ids_of(registry)

        def work(label: str) -> list[str]:
            taken = []
            while (job := registry.claim("alpha")) is not None:
                taken.append(job.job_id)
                add(registry, f"{label} {len(taken)}", agent_session=label)
                assert len(ids_of(registry)) >= 20 + len(taken)
            return taken

        theirs, ours = beside_a_fork(lambda: work("child"), lambda: work("parent"))
        assert len(theirs) + len(ours) == 20
        assert not set(theirs) & set(ours)
        assert len(ids_of(registry)) == 40
        assert_same(site, registry, site.open())

    def test_both_sides_list_the_folder_at_the_same_time(
        self, site: Site, registry: Registry
    ) -> None:
        """A fork shares the open folder, and with it the place in its list of names."""
        add(registry)
        for i in range(1500):
            (site.place / f"empty{i}.json").touch()

        def work() -> list[int]:
            shown = []
            for _ in range(5):
                shutil.rmtree(site.home, ignore_errors=True)
                shown.append(len(ids_of(registry)))
            return shown

        theirs, ours = beside_a_fork(work, work)
        assert set(theirs) | set(ours) == {1501}

    def test_a_child_that_only_ends_takes_nothing_from_its_parent(
        self, site: Site, registry: Registry
    ) -> None:
        add(registry)
        ids_of(registry)
        for _ in range(3):
            beside_a_fork(lambda: ids_of(registry), lambda: registry.store.close())
            add(registry)
        assert_same(site, registry)


def _threads(work: Callable[[], None], number: int, failures: list[str]) -> list[threading.Thread]:
    def watched() -> None:
        try:
            work()
        except BaseException as problem:
            failures.append(repr(problem))

    threads = [threading.Thread(target=watched) for _ in range(number)]
    for thread in threads:
        thread.start()
    return threads


def beside_a_fork(theirs: Callable[[], Any], ours: Callable[[], Any]) -> tuple[Any, Any]:
    """Both at once, one of them in a forked child; what each answered."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.write(writer, json.dumps(theirs()).encode())
            status = 0
        except BaseException as problem:
            os.write(writer, json.dumps(repr(problem)).encode())
        finally:
            os._exit(status)
    os.close(writer)
    try:
        answer = ours()
    finally:
        with os.fdopen(reader, "rb") as pipe:
            told = json.loads(pipe.read())
        ended = os.waitpid(pid, 0)[1]
    assert ended == 0, told
    return told, answer
