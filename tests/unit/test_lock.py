"""The registry's lock, with real processes: killed, stopped, forked, and strangers to our mark."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from mam_core import file_lock
from mam_core.disk import Folder
from mam_core.errors import LockTimeout, MamError
from mam_core.file_lock import lock_within
from mam_core.stores import lock as lock_module
from mam_core.stores.lock import LOCK_NAME, RegistryLock
from mam_core.tmux import turnstile
from mam_core.tmux.command import Address
from mam_core.tmux.facts import TmuxFailed
from mam_core.tmux.names import turnstile_path
from tests.support.children import Child, child
from tests.support.clock import FakeClock
from tests.support.patience import PATIENCE_SEC

#: Takes the lock as we do, says so, and lets go when told.
HOLDER = """
import sys
from mam_core import file_lock
from mam_core.disk import Folder
from mam_core.stores.lock import RegistryLock
lock = RegistryLock.of(Folder.open(sys.argv[1]))
print("died" if lock.acquire() else "clean", flush=True)
for word in sys.stdin:
    lock.release()
    print("free", flush=True)
    break
"""

#: A script of the original: it locks and leaves no mark.
FOREIGN = """
import fcntl, sys
file = open(sys.argv[1] + "/.lock", "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("holds", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder.open(str(tmp_path / "jobs"), create=True) as made:
        yield made


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "PATIENCE_SEC", 0.3)
    monkeypatch.setattr(file_lock, "PATIENCE_SEC", 0.3)


def lock_file(folder: Folder) -> Path:
    return Path(folder.path) / LOCK_NAME


def is_free(folder: Folder) -> bool:
    """Asked as a stranger asks: by a plain flock of one's own."""
    with open(lock_file(folder), "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class TestHolding:
    def test_others_are_excluded_until_it_is_released(self, folder: Folder) -> None:
        """A5, B1: `.lock` is there after the first use and stays."""
        with RegistryLock.of(folder):
            assert not is_free(folder)
        assert is_free(folder)
        assert lock_file(folder).stat().st_size == 0

    def test_one_thread_may_take_it_again(self, folder: Folder) -> None:
        lock = RegistryLock.of(folder)
        with lock, RegistryLock.of(folder):
            assert not is_free(folder)
        with lock:
            with lock:
                pass
            assert not is_free(folder), "the inner end is not the end"
        assert is_free(folder)

    def test_one_object_serves_a_folder_however_often_it_is_opened(self, folder: Folder) -> None:
        with Folder.open(folder.path) as again:
            assert RegistryLock.of(folder) is RegistryLock.of(again)

    def test_threads_exclude_one_another(self, folder: Folder) -> None:
        """B4."""
        inside = 0
        most = 0
        lock = RegistryLock.of(folder)

        def work() -> None:
            nonlocal inside, most
            for _ in range(50):
                with lock:
                    inside += 1
                    most = max(most, inside)
                    inside -= 1

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SEC)
        assert most == 1
        assert is_free(folder)

    def test_an_exception_inside_lets_go(self, folder: Folder) -> None:
        with pytest.raises(ZeroDivisionError), RegistryLock.of(folder):
            _ = 1 / 0
        assert is_free(folder)


class TestDeathOfAHolder:
    def test_kill_frees_the_lock_and_the_next_holder_is_told(self, folder: Folder) -> None:
        """B3."""
        with child(HOLDER, folder.path) as holder:
            assert holder.hear() == "clean"
            holder.kill()
        lock = RegistryLock.of(folder)
        assert lock.acquire() is True
        lock.release()
        assert lock.acquire() is False, "told once"
        lock.release()

    def test_an_orderly_end_is_no_death(self, folder: Folder) -> None:
        with child(HOLDER, folder.path) as holder:
            holder.hear()
            holder.tell()
            assert holder.hear() == "free"
        lock = RegistryLock.of(folder)
        assert lock.acquire() is False
        lock.release()


@pytest.mark.usefixtures("short_patience")
class TestWaiting:
    def test_a_stopped_holder_is_named_in_bounded_time(self, folder: Folder) -> None:
        """B6, decision 31."""
        with child(HOLDER, folder.path) as holder:
            holder.hear()
            os.kill(holder.pid, signal.SIGSTOP)
            stopped = (
                rf"held by pid {holder.pid}, which is stopped \(`kill -CONT \d+`\), for 0\.3 s"
            )
            with pytest.raises(LockTimeout, match=stopped):
                RegistryLock.of(folder).acquire()
            with pytest.raises(BlockingIOError):
                RegistryLock.of(folder).acquire(wait=False)
            os.kill(holder.pid, signal.SIGCONT)
            holder.tell()
            assert holder.hear() == "free"
        with RegistryLock.of(folder):
            pass

    def test_a_holder_that_leaves_no_mark_is_named_by_the_kernel(self, folder: Folder) -> None:
        """B1, B6: scripts of the original exclude us and we them."""
        lock_file(folder).touch()
        with child(FOREIGN, folder.path) as holder:
            assert holder.hear() == "holds"
            named = str(holder.pid)
            if not re.search(rf"FLOCK .* {named} ", Path("/proc/locks").read_text()):
                named = "another process"  # this kernel does not tell
            with pytest.raises(LockTimeout, match=named):
                RegistryLock.of(folder).acquire()

    def test_any_other_lock_is_waited_for_in_bounded_time_as_well(self, folder: Folder) -> None:
        """A new broker address, a submission: held for moments, unless its holder is stopped."""
        lock_file(folder).touch()
        with child(FOREIGN, folder.path) as holder, lock_file(folder).open("r+") as file:
            assert holder.hear() == "holds"
            with pytest.raises(LockTimeout, match=r"the file has been locked by .* for 0\.3 s"):
                lock_within(file.fileno(), "the file")
            holder.kill()
            lock_within(file.fileno(), "the file")

    def test_a_start_of_a_session_that_waits_for_one_names_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(turnstile, "PATIENCE_SEC", 0.3)
        address = Address("-S", str(tmp_path / "socket"))
        with open(turnstile_path(address.path), "w") as holder:
            fcntl.flock(holder, fcntl.LOCK_EX)
            words = r"has been locked by .* for 0\.3 s"
            with pytest.raises(TmuxFailed, match=words), turnstile.alone(address):
                pass
        with turnstile.alone(address):
            pass

    def test_a_mark_that_is_no_text_does_not_disturb_the_message(self, folder: Folder) -> None:
        lock_file(folder).write_bytes(b"\xff\x1b[2J\0")
        with child(FOREIGN, folder.path) as holder:
            holder.hear()
            with pytest.raises(LockTimeout) as timeout:
                RegistryLock.of(folder).acquire()
            assert timeout.value.message.isprintable()

    def test_patience_starts_anew_while_the_holder_changes(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Decision 31: a busy registry is no stuck one."""
        with child(HOLDER, folder.path) as first:
            assert first.hear() == "clean"
            with child(HOLDER, folder.path) as second:
                self.wait_behind(folder, [first, second], monkeypatch)

    def wait_behind(
        self, folder: Folder, holders: list[Child], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each holds it for less than the patience, and all of them for more, by our clock."""
        clock = FakeClock()
        naps = count(1)

        def nap(_: float) -> None:
            clock.pass_time(file_lock.PATIENCE_SEC * 0.4)
            if next(naps) % 2 == 0:
                before = holders.pop(0)
                before.tell()
                assert before.hear() == "free"
                if holders:
                    assert holders[0].hear() == "clean"

        waiting = SimpleNamespace(
            monotonic=clock.since_boot, monotonic_ns=time.monotonic_ns, sleep=nap
        )
        monkeypatch.setattr(lock_module, "time", waiting)
        with RegistryLock.of(folder):
            assert not holders

    def test_a_thread_that_never_lets_go_is_said_to_be_ours(self, folder: Folder) -> None:
        """B4, B6."""
        lock = RegistryLock.of(folder)
        holding, enough = threading.Event(), threading.Event()

        def hold() -> None:
            with lock:
                holding.set()
                enough.wait(PATIENCE_SEC)

        thread = threading.Thread(target=hold)
        thread.start()
        assert holding.wait(PATIENCE_SEC)
        try:
            with pytest.raises(
                LockTimeout, match=f"another thread of this process .*{os.getpid()}"
            ):
                lock.acquire()
        finally:
            enough.set()
            thread.join(PATIENCE_SEC)
        with lock:
            pass

    def test_patience_starts_anew_while_threads_pass_it_on(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Decision 31: the same for threads of one console as for processes."""
        lock = RegistryLock.of(folder)
        mutex = PassedOn(lock)
        monkeypatch.setattr(lock, "_mutex", mutex)
        with mutex, lock:
            assert mutex.times == 3


class PassedOn:
    """The mutex of a lock that one thread after the other holds, each until somebody has waited
    for it as long as patience lasts."""

    def __init__(self, lock: RegistryLock) -> None:
        self._lock = lock
        self._mutex = lock._mutex
        self._enough = threading.Event()
        self.times = 0

    def __enter__(self) -> None:
        self._next()

    def __exit__(self, *exc: object) -> None:
        self._end()

    def acquire(self, timeout: float) -> bool:
        if self._mutex.acquire(timeout=timeout):
            return True
        self._end()
        self._next()
        self.times += 1
        if self.times == 3:
            self._end()
        return False

    def release(self) -> None:
        self._mutex.release()

    def _next(self) -> None:
        holding = threading.Event()
        self._enough.clear()

        def hold() -> None:
            with self._lock:
                holding.set()
                self._enough.wait(PATIENCE_SEC)

        self._thread = threading.Thread(target=hold)
        self._thread.start()
        assert holding.wait(PATIENCE_SEC)

    def _end(self) -> None:
        self._enough.set()
        self._thread.join()


class TestForksAndPrograms:
    def test_a_fork_takes_a_lock_of_its_own(self, folder: Folder) -> None:
        """B2: the handle of the parent would let both in."""
        lock = RegistryLock.of(folder)
        with lock:
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    lock.acquire(wait=False)
                except BlockingIOError:
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert not is_free(folder), "the child's end did not free it"
        assert is_free(folder)

    def test_a_fork_can_use_it_while_another_thread_of_the_parent_holds_it(
        self, folder: Folder
    ) -> None:
        lock = RegistryLock.of(folder)
        with lock:
            pass
        holding, enough = threading.Event(), threading.Event()

        def hold() -> None:
            with lock:
                holding.set()
                enough.wait(PATIENCE_SEC)

        thread = threading.Thread(target=hold)
        thread.start()
        assert holding.wait(PATIENCE_SEC)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                with lock:
                    code = 0
            finally:
                os._exit(code)
        enough.set()
        thread.join(PATIENCE_SEC)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    def test_a_program_started_inside_inherits_no_lock(self, folder: Folder) -> None:
        """Fault 26: an agent that outlives its starter must not keep the registry locked."""
        sleeper = "import sys; print('up', flush=True); sys.stdin.readline()"
        with RegistryLock.of(folder):
            process = subprocess.Popen(
                [sys.executable, "-c", sleeper],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                close_fds=False,
            )
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            handles = Path(f"/proc/{process.pid}/fd")
            opened = [os.readlink(handle) for handle in handles.iterdir()]
        free = is_free(folder)
        process.communicate(b"\n")
        assert free
        assert not [name for name in opened if name.startswith(folder.path)]


class TestTheFile:
    def test_deleted_under_us_it_is_made_again_and_excludes_again(self, folder: Folder) -> None:
        """A5."""
        lock = RegistryLock.of(folder)
        with lock:
            pass
        lock_file(folder).unlink()
        with lock:
            assert not is_free(folder)
        assert is_free(folder)

    def test_replaced_while_we_wait_we_wait_for_the_new_one(self, folder: Folder) -> None:
        lock = RegistryLock.of(folder)
        with lock:
            pass
        lock_file(folder).unlink()
        with child(HOLDER, folder.path) as holder:
            holder.hear()
            with pytest.raises(BlockingIOError):
                lock.acquire(wait=False)

    @pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
    def test_its_mode_is_0600_whatever_the_umask(self, folder: Folder, umask: int) -> None:
        """A19."""
        before = os.umask(umask)
        try:
            with RegistryLock.of(folder):
                pass
        finally:
            os.umask(before)
        assert lock_file(folder).stat().st_mode & 0o7777 == 0o600

    @pytest.mark.parametrize("plant", ["link", "pipe", "folder"])
    def test_a_planted_one_is_refused_every_time(
        self, folder: Folder, tmp_path: Path, plant: str
    ) -> None:
        target = tmp_path / "precious"
        target.write_text("untouched")
        match plant:
            case "link":
                lock_file(folder).symlink_to(target)
            case "pipe":
                os.mkfifo(lock_file(folder))
            case _:
                lock_file(folder).mkdir()
        lock = RegistryLock.of(folder)
        for _ in range(2):
            with pytest.raises(MamError):
                lock.acquire()
        assert target.read_text() == "untouched"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
    def test_one_of_another_user_is_refused_every_time(self, folder: Folder) -> None:
        lock_file(folder).touch()
        os.chown(lock_file(folder), 65534, 65534)
        lock = RegistryLock.of(folder)
        for _ in range(2):
            with pytest.raises(MamError, match="belongs to user 65534"):
                lock.acquire()
