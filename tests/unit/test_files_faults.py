"""Disks that are full or broken, and a folder that vanishes: refused, and nothing left behind."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mam_core.audit import AuditLog
from mam_core.errors import (
    JobNotFound,
    MamError,
    RegistryGone,
    StoreError,
    SyncFailed,
)
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.stores.base import GateKind
from mam_core.stores.files import FilesStore
from mam_core.stores.lock import RegistryLock
from tests.support.files import rows, temps, told
from tests.support.handles import close_later
from tests.support.jobs import add, in_status, request, running
from tests.support.patience import PATIENCE_SEC


class FailingCalls:
    """Lets the n-th call that changes the disk fail, as a full disk would."""

    #: What needs room: a file or a folder more, a byte more, a name more.
    NAMES = ("open", "write", "pwrite", "replace", "mkdir")

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int = errno.ENOSPC) -> None:
        self.at = 0
        self.count = 0
        self.number = number
        self.failed = ""
        for name in self.NAMES:
            monkeypatch.setattr(os, name, self._wrap(name, getattr(os, name)))

    def _wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.at and not (name == "open" and not args[1] & os.O_CREAT):
                self.count += 1
                if self.count == self.at:
                    self.failed = f"{name}{args!r:.200}"
                    raise OSError(self.number, os.strerror(self.number))
            return real(*args, **kwargs)

        return call

    def arm(self, at: int) -> None:
        self.at, self.count, self.failed = at, 0, ""

    def disarm(self) -> str:
        self.at = 0
        return self.failed


class TestAFullDisk:
    @pytest.mark.parametrize("verb", ["register", "bulk", "claim", "finish", "archive", "pause"])
    @pytest.mark.filterwarnings("ignore")
    def test_whichever_call_fails_the_change_is_made_or_refused_and_nothing_is_left_behind(
        self, registry: Registry, place: Path, monkeypatch: pytest.MonkeyPatch, verb: str
    ) -> None:
        """D5, F13: told of a failure nothing has changed, told of none everything has."""
        calls = FailingCalls(monkeypatch)
        add(registry)  # the folder and its files are there
        # A batch makes hundreds of calls that are much alike: a few of each kind will do.
        for at in range(1, 400, 11 if verb == "bulk" else 1):
            job = running(registry, agent_session=f"finish{at}")
            done = in_status(registry, Status.COMPLETED, agent_session="done")
            waiting = add(registry, agent_session=f"claim{at}")
            before = rows(registry)
            calls.arm(at)
            refused: MamError | None = None
            try:
                match verb:
                    case "register":
                        add(registry, "new")
                    case "bulk":
                        registry.register([request(f"new {i}") for i in range(17)])
                    case "claim":
                        registry.claim(f"claim{at}")
                    case "finish":
                        end = Status.ERROR
                        registry.finish(job.job_id, end, attempt=1, reason=Reason.EXIT)
                    case "archive":
                        registry.archive([done])
                    case _:
                        registry.pause(GateKind.ALL)
            except MamError as problem:
                refused = problem
            failed = calls.disarm()
            if not failed:
                assert at > 5
                return
            assert temps(place) == [], failed
            if refused is not None:
                assert "full" in refused.message, failed
                assert rows(registry) == before, f"{failed}: refused, and yet it was done"
            elif verb != "pause":
                assert rows(registry) != before, f"{failed}: not refused, and yet not done"
            registry.resume(GateKind.ALL)
            for job_id in (job.job_id, done, waiting):
                assert [n for n, _ in told(registry, job_id)] == list(
                    range(1, len(told(registry, job_id)) + 1)
                )
        pytest.fail("there is no end of calls")

    def test_a_real_one_refuses_in_one_sentence_and_heals(self, tmp_path: Path) -> None:
        """D5, E15: a small file system of our own, filled to the last page."""
        mount = tmp_path / "small"
        mount.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "tmpfs", str(mount)]
        try:
            made = subprocess.run(command, capture_output=True)
        except FileNotFoundError:
            pytest.skip("there is no mount command")
        if made.returncode != 0:
            pytest.skip(f"no file system can be mounted: {made.stderr.decode().strip()}")
        try:
            self.fill_and_heal(mount)
        finally:
            subprocess.run(["umount", "-l", str(mount)], check=True)

    def fill_and_heal(self, mount: Path) -> None:
        store = close_later(FilesStore(str(mount / "jobs"), AuditLog(str(mount / "logs"))))
        registry = Registry(store)
        kept = [add(registry, "x" * 2000)]
        filler = mount / "filler"
        outcomes = set()
        for pages in range(8):
            with open(filler, "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(b"\0" * 4096)
                except OSError:
                    file.truncate(max(0, file.tell() // 4096 - pages) * 4096)
            try:
                kept.append(add(registry, "y" * 5000))
                outcomes.add("done")
            except StoreError as problem:
                outcomes.add(problem.message.rpartition(": ")[2])
            filler.unlink()
            assert temps(mount / "jobs") == []
            assert set(rows(registry)) == set(kept)
        assert outcomes == {"done", "the disk is full"}
        add(registry)
        for job_id in kept:
            assert told(registry, job_id) == [(1, "registered")]
        store.close()


class TestADiskThatFails:
    def test_after_a_failed_sync_this_store_writes_nothing_more(
        self, registry: Registry, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job_id = add(registry)

        def fail(fd: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(SyncFailed, match="could not be synced"):
                registry.next_seq(job_id)
        assert temps(place) == []
        with pytest.raises(StoreError, match="nothing more is written by this process"):
            registry.next_seq(job_id)
        assert registry.get(job_id).last_seq == 0
        fresh = Registry(close_later(FilesStore(str(place), AuditLog(registry.store.audit.path))))
        assert fresh.next_seq(job_id) == 1

    def test_a_failed_sync_of_the_journal_leaves_no_temp_file(
        self, registry: Registry, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """D5: a bulk registration syncs its intent."""
        add(registry)
        real = os.fsync

        def fail(fd: int) -> None:
            if os.readlink(f"/proc/self/fd/{fd}").endswith(".journal"):
                raise OSError(errno.EIO, "Input/output error")
            real(fd)

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(SyncFailed):
            registry.register([request(str(i)) for i in range(20)])
        assert len(rows(registry)) == 1
        assert temps(place) == []

    def test_a_read_only_folder_is_said_to_be_one(
        self, registry: Registry, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """E15."""
        job_id = add(registry)
        real = os.open

        def read_only(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
            if flags & os.O_CREAT and str(path).endswith(".tmp"):
                raise OSError(errno.EROFS, "Read-only file system")
            return real(path, flags, *args, **kwargs)

        monkeypatch.setattr(os, "open", read_only)
        with pytest.raises(StoreError, match="read-only file system"):
            registry.next_seq(job_id)


class TestAVanishedFolder:
    def test_moved_away_it_is_told_and_never_made_anew(
        self, registry: Registry, place: Path
    ) -> None:
        """The registry is the truth: an empty one is not made in its place in silence."""
        job_id = add(registry)
        place.rename(place.with_name("moved"))
        for _ in range(2):
            with pytest.raises(RegistryGone):
                add(registry)
            with pytest.raises(RegistryGone):
                registry.next_seq(job_id)
            assert not place.exists()
        place.with_name("moved").rename(place)
        assert registry.next_seq(job_id) == 1, "it is back"

    def test_replaced_between_two_calls_the_new_one_is_used(
        self, registry: Registry, place: Path
    ) -> None:
        """As a process started now would: a backup put in place needs no restart."""
        old = add(registry)
        place.rename(place.with_name("moved"))
        place.mkdir(mode=0o700)
        with pytest.raises(JobNotFound):
            registry.next_seq(old)
        new = add(registry)
        assert [path.stem for path in place.glob("*.json")] == [new]
        assert [path.stem for path in place.with_name("moved").glob("*.json")] == [old]

    def test_replaced_while_we_wait_for_the_lock(
        self, registry: Registry, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job_id = add(registry)
        problems: list[MamError] = []
        waits = threading.Event()
        wait = RegistryLock._wait

        def noted(lock: RegistryLock, *args: bool) -> None:
            waits.set()
            wait(lock, *args)

        monkeypatch.setattr(RegistryLock, "_wait", noted)

        def write() -> None:
            try:
                registry.next_seq(job_id)
            except MamError as problem:
                problems.append(problem)

        with open(place / ".lock", "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            writer = threading.Thread(target=write)
            writer.start()
            assert waits.wait(PATIENCE_SEC)
            place.rename(place.with_name("moved"))
            place.mkdir(mode=0o700)
        writer.join(PATIENCE_SEC)
        assert [type(problem) for problem in problems] == [RegistryGone]
        assert list(place.iterdir()) == []

    def test_deleted_with_all_that_was_in_it(self, registry: Registry, place: Path) -> None:
        job_id = add(registry)
        shutil.rmtree(place)
        for verb in (lambda: add(registry), lambda: registry.next_seq(job_id)):
            with pytest.raises(RegistryGone):
                verb()
        assert not place.exists()
        with pytest.raises(MamError):
            registry.get(job_id)

    def test_in_the_middle_of_a_change(self, registry: Registry, place: Path) -> None:
        job_id = add(registry)

        def change() -> None:
            with registry.store.transaction() as tx:
                shutil.rmtree(place)
                tx.put(tx.get(job_id), None)

        with pytest.raises((StoreError, JobNotFound)):
            change()
        assert not place.exists()
