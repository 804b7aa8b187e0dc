"""``mam dispatch sync``: copies that met, copies that could not, and what the lock spans."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.dispatch import syncing, tasks
from mam_core.dispatch.sync import RemoteUnreachable, Synced, remote_at
from mam_core.dispatch.syncing import Syncing
from mam_core.dispatch.tasks import DispatchError, Task, TaskStatus
from mam_core.dispatch.tasks_file import TasksFile
from mam_core.errors import LockTimeout
from tests.support.dispatching import Node, remote_shell
from tests.support.patience import PATIENCE_SEC, eventually
from tests.support.supervision import with_word

pytestmark = pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")

PENDING = Task(TaskStatus.PENDING)
MASTER = "mac1:dispatch-registry.json"
TIMEOUT_SEC = 60.0


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with remote_shell(tmp_path, monkeypatch) as folder:
        yield folder


@pytest.fixture
def master(hosts: Path) -> Node:
    made = Node(hosts / "mac1", "mac1")
    made.write(**{f"S{n:02}": PENDING for n in range(8)})
    return made


@pytest.fixture
def far(hosts: Path) -> Node:
    return Node(hosts / "gcp1", "gcp1")


def claim(node: Node, task_id: str, at: float | None = None) -> None:
    with node.file.changing() as draft:
        task = draft.get(task_id)
        assert task is not None
        draft.put(task_id, tasks.claimed(task, node.name, 7, "job", at or time.time()))


def sync(node: Node, remote: str = MASTER, timeout_sec: float = TIMEOUT_SEC) -> None:
    remote_at(remote).sync(node.file, timeout_sec)


def holders(node: Node) -> dict[str, str]:
    return {name: task["node"] for name, task in node.tasks.items() if "node" in task}


@pytest.mark.parametrize("way", ["rsync", "path"])
def test_a_push_never_undoes_the_claim_of_another_node(master: Node, far: Node, way: str) -> None:
    """M24: plain rsync would, in either direction."""
    remote = MASTER if way == "rsync" else str(master.path)
    sync(far, remote)
    claim(far, "S01")
    claim(master, "S02")
    sync(far, remote)
    assert holders(far) == holders(master) == {"S01": "gcp1", "S02": "mac1"}
    assert (master.path.stat().st_mode & 0o777) == 0o600
    before = master.path.stat().st_ino, far.path.stat().st_ino
    sync(far, remote)
    assert (master.path.stat().st_ino, far.path.stat().st_ino) == before


def test_a_copy_is_made_where_there_is_none(master: Node, far: Node) -> None:
    """M22: either way round."""
    (master.folder / "new folder").mkdir()
    sync(far)
    sync(far, "mac1:~/new folder/it's.json")
    made = TasksFile(str(master.folder / "new folder" / "it's.json"))
    assert made.load().tasks == far.file.load().tasks == master.file.load().tasks


def test_each_keeps_its_own_folder_of_specs(master: Node, far: Node) -> None:
    far.write()
    sync(far)
    headers = [node.file.load().header["specs_dir"] for node in (master, far)]
    assert headers == [str(master.specs), str(far.specs)]


def test_of_two_claims_off_line_the_earlier_stays_and_both_copies_say_so(
    master: Node, far: Node
) -> None:
    sync(far)
    claim(master, "S01", 2e9)
    claim(far, "S01", 1e9)
    sync(far)
    assert holders(far) == holders(master) == {"S01": "gcp1"}


def test_many_at_once_lose_nothing(master: Node, hosts: Path) -> None:
    """M25: the lock over there spans read and rename; the document's one-liner locks jq alone."""
    nodes = [Node(hosts / f"gcp{n}", f"gcp{n}") for n in range(3)]
    problems: list[Exception] = []

    def work(node: Node, first: int) -> None:
        try:
            for number in (first, first + 4):
                sync(node)
                claim(node, f"S{number:02}")
                sync(node)
        except Exception as problem:  # a thread has nobody else to tell
            problems.append(problem)

    threads = [
        threading.Thread(target=work, args=(node, number)) for number, node in enumerate(nodes)
    ]
    for thread in threads:
        thread.start()
    claim(master, "S03")
    claim(master, "S07")
    for thread in threads:
        thread.join()
    assert not problems
    expected = {f"S{n:02}": f"gcp{n % 4}" if n % 4 < 3 else "mac1" for n in range(8)}
    assert holders(master) == expected


def test_nobody_writes_between_its_read_and_its_rename(
    master: Node, far: Node, hosts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M25."""
    bin_folder = hosts / "bin"
    bin_folder.mkdir()
    slow = bin_folder / "rsync"
    slow.write_text(
        f'#!/bin/sh\n{shutil.which("rsync")} "$@" || exit\n'
        f'touch "{hosts}/pulled"\nwhile ! [ -e "{hosts}/go" ]; do sleep 0.05; done\n'
    )
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    sync_thread = threading.Thread(target=sync, args=(far,))
    sync_thread.start()
    try:
        eventually((hosts / "pulled").exists, "it has read")
        hasty = TasksFile(str(master.path), patience_sec=0.1)
        with pytest.raises(LockTimeout, match="has been locked by pid"), hasty.changing():
            pass
    finally:
        (hosts / "go").touch()
        sync_thread.join()
    claim(master, "S01")
    assert holders(master) == {"S01": "mac1"}


class TestOffLine:
    def test_work_goes_on_and_heals(self, hosts: Path) -> None:
        """M23: an unreachable remote blocks nothing; later its copy gets what was done."""
        far = Node(hosts / "gcp1", "gcp1")
        far.init(S01="echo one")
        ran = far.dispatch("run", "--sync", MASTER)
        assert "S01 completed" in ran.stdout
        assert ran.stderr.count("not synced, work goes on here: mac1 cannot be reached") == 1
        assert "no route to host" in far.dispatch("sync", MASTER, code=1).stderr
        master = Node(hosts / "mac1", "mac1")
        assert "0 tasks came, 1 went" in far.dispatch("sync", MASTER).stderr
        assert holders(master) == {"S01": "gcp1"}

    def test_again_and_again_says_its_trouble_once_and_its_end(
        self, master: Node, far: Node, hosts: Path
    ) -> None:
        """M22, M23: every so often, and soon after a change."""
        away = hosts / "away"
        (hosts / "mac1").rename(away)
        said: list[str] = []
        with Syncing(far.file, remote_at(MASTER), 0.1, said.append):
            time.sleep(0.5)
            away.rename(hosts / "mac1")
            eventually(lambda: len(said) > 1, "it is back")
            claim(far, "S01")
            eventually(lambda: holders(master) == {"S01": "gcp1"}, "the claim went out")
        assert [words.split(":")[0] for words in said] == [
            "not synced, work goes on here",
            "synced again",
        ]

    def test_a_host_that_does_not_answer_costs_the_timeout(
        self, far: Node, hosts: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """M23: bounded time, and nothing is left of the try."""
        far.write(S01=PENDING)
        silent = hosts / "silent"
        # Its path stays in its command line; whether it comes that far in time is not said.
        waits = f"exec '{sys.executable}' -c 'import time; time.sleep(600)'"
        silent.write_text(f'#!/bin/sh\n{waits} "$0"\n')
        silent.chmod(0o755)
        monkeypatch.setenv("RSYNC_RSH", str(silent))
        with pytest.raises(RemoteUnreachable, match="does not answer in time"):
            sync(far, timeout_sec=0.5)
        assert not with_word(str(silent))
        assert not holders(far)

    def test_who_asked_and_died_frees_the_lock(self, master: Node, far: Node, hosts: Path) -> None:
        """M25."""
        (hosts / "gcp1" / "dispatch-registry.json").unlink(missing_ok=True)
        shell = os.environ["RSYNC_RSH"]
        held = hosts / "held"
        (hosts / "slow").write_text(
            f'#!/bin/sh\ncase "$*" in *python3*) exec "{shell}" "$@";; esac\n'
            f'echo $$ > "{held}"; exec sleep 600\n'
        )
        (hosts / "slow").chmod(0o755)
        with far.dispatching("sync", MASTER, RSYNC_RSH=str(hosts / "slow")) as syncing:
            syncing.until(lambda: held.exists() and held.read_text(), "it holds the lock")
            syncing.send(signal.SIGKILL)
        claim(master, "S01")
        os.kill(int(held.read_text()), signal.SIGKILL)  # a network would have noticed

    def test_a_shell_that_leaves_a_program_behind_does_not_hold_us(
        self, far: Node, hosts: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As ssh does with ControlPersist: the program keeps the error output open."""
        left, shell = hosts / "left", hosts / "leaving"
        shell.write_text(
            "#!/bin/sh\nsleep 600 </dev/null >/dev/null &\n"
            f'echo $! >"{left}"\necho no route to host >&2\nexit 255\n'
        )
        shell.chmod(0o755)
        monkeypatch.setenv("RSYNC_RSH", str(shell))
        try:
            with pytest.raises(RemoteUnreachable, match="cannot be reached: no route to host"):
                sync(far)
        finally:
            os.kill(int(left.read_text()), signal.SIGKILL)

    @pytest.mark.parametrize("when", ["meanwhile", "at the end"])
    def test_a_sync_that_does_not_come_back_keeps_no_run(
        self, far: Node, monkeypatch: pytest.MonkeyPatch, when: str
    ) -> None:
        """Of a shared folder that hangs, say."""
        monkeypatch.setattr(syncing, "PARTING_SEC", 0.1)
        hangs, over, said = threading.Event(), threading.Event(), list[str]()

        class Hanging:
            def sync(self, file: TasksFile, timeout_sec: float) -> Synced:
                if threading.current_thread() is not threading.main_thread():
                    hangs.set()
                    over.wait()
                return Synced(0, 0)

        try:
            with Syncing(far.file, Hanging(), 600, said.append, 0.1) as going_on:
                if when == "meanwhile":
                    going_on.soon()
                    assert hangs.wait(PATIENCE_SEC)
            assert hangs.is_set()
            assert said == ["not synced at the end: the sync does not return"]
        finally:
            over.set()

    def test_without_rsync_the_sentence_says_what_to_do(
        self, master: Node, far: Node, hosts: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """M22."""
        bare = hosts / "bare"
        bare.mkdir()
        (bare / "python3").symlink_to(sys.executable)
        (bare / "sh").symlink_to("/bin/sh")
        monkeypatch.setenv("PATH", str(bare))
        with pytest.raises(RemoteUnreachable, match="rsync is not here: install it"):
            sync(far)
        sync(far, str(master.path))
        assert far.file.load().tasks == master.file.load().tasks

    def test_a_copy_that_is_none_is_not_overwritten(self, master: Node, far: Node) -> None:
        far.write(S01=PENDING)
        master.path.write_text("notes of mine")
        with pytest.raises(DispatchError, match="cannot be read: it is not JSON"):
            sync(far)
        assert master.path.read_text() == "notes of mine"


def test_a_host_without_a_colon_makes_no_file(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = node.path.parent
    node.write(S01=PENDING)
    monkeypatch.chdir(folder)
    with pytest.raises(DispatchError) as refused:
        sync(node, "mac1")
    assert "mac1:PATH" in refused.value.message
    assert "./mac1" in refused.value.message
    assert not (folder / "mac1").exists()
    sync(node, "./mac1")  # somebody means a file
    assert (folder / "mac1").exists()
    sync(node, "mac1")  # and it is there now


@pytest.mark.parametrize("place", ["-oProxyCommand=x:y", "host:", "host:folder/"])
def test_what_is_no_remote_is_a_sentence(place: str) -> None:
    with pytest.raises(DispatchError, match="is no remote"):
        remote_at(place)
