"""The file: one at a time changes it, everybody reads it whole, and strangers may write it too."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

import mam_core.dispatch
from mam_core.dispatch import tasks
from mam_core.dispatch.layout import Whole, compose
from mam_core.dispatch.tasks import DispatchError, Task, TaskStatus
from mam_core.dispatch.tasks_file import TasksFile, tasks_path
from mam_core.errors import LockTimeout, StoreError
from tests.support.patience import eventually

PENDING = Task(TaskStatus.PENDING)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "dispatch-registry.json"
    made.write_bytes(compose(Whole({}, {f"S{n:02}": PENDING for n in range(50)})))
    return made


def claim(file: TasksFile, name: str) -> None:
    with file.changing() as draft:
        task = draft.get(name)
        assert task is not None
        draft.put(name, tasks.claimed(task, "mac2", 7, "job", 1e9))


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """M1."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("REGISTRY", raising=False)
    assert tasks_path() == str(tmp_path / "Downloads" / "dispatch-registry.json")
    monkeypatch.setenv("REGISTRY", "~/x.json")
    assert tasks_path() == str(tmp_path / "x.json")
    assert tasks_path("~/y.json") == str(tmp_path / "y.json")


def test_a_change_is_dated_and_private(path: Path) -> None:
    """M2, decision 10."""
    file = TasksFile(str(path))
    claim(file, "S07")
    data = json.loads(path.read_text())
    assert data["updated_at"][10] == "T"
    assert data["updated_at"][-3] == ":"
    assert data["tasks"]["S07"]["status"] == "claimed"
    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_changed_is_nothing_written(path: Path) -> None:
    before = path.stat().st_ino
    with TasksFile(str(path)).changing() as draft:
        draft.get("S01")
    assert path.stat().st_ino == before


def test_an_exception_leaves_it_as_it_was(path: Path) -> None:
    before = path.read_bytes()
    file = TasksFile(str(path))
    with pytest.raises(DispatchError), file.changing() as draft:
        draft.replace(compose(Whole({}, {"S01": Task.from_dict("S01", {"status": "x"})})))
    assert path.read_bytes() == before
    claim(file, "S01")


def test_a_stranger_may_write_it_in_any_layout(path: Path) -> None:
    """jq and editors know nothing of ours: what they wrote is read, whole, before our next word."""
    file = TasksFile(str(path))
    claim(file, "S01")
    for step, indent in enumerate((None, 2, 4)):
        data = json.loads(path.read_text())
        data["tasks"]["S02"] = {"status": "failed", "error": f"by hand {step}"}
        data["note"] = {"tasks": {"S03": {"status": "completed"}}}
        path.write_text(json.dumps(data, indent=indent))
        claim(file, f"S1{step}")
        found = file.load()
        assert found.tasks["S02"].error == f"by hand {step}"
        assert found.tasks["S03"] == PENDING._replace(extra={})
        assert found.header["note"] == data["note"]


def test_a_link_in_ones_downloads_stays_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(path)
    claim(TasksFile(str(link)), "S01")
    assert link.is_symlink()
    assert TasksFile(str(path)).load().tasks["S01"].status is TaskStatus.CLAIMED


def test_no_file_is_a_sentence_that_says_what_to_do(tmp_path: Path) -> None:
    file = TasksFile(str(tmp_path / "none" / "x.json"))
    with pytest.raises(DispatchError, match="mam dispatch init"):
        file.load()
    with pytest.raises(DispatchError, match="mam dispatch init"), file.changing():
        pass
    assert not (tmp_path / "none").exists()


def test_a_folder_in_its_place_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.json").mkdir()
    with pytest.raises(StoreError, match="is a folder"):
        TasksFile(str(tmp_path / "x.json")).load()


def test_a_lock_that_is_held_is_waited_for_and_then_named(path: Path) -> None:
    """M6, M26: a script of one's own takes the same lock."""
    with open(f"{path}.lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with (
            pytest.raises(LockTimeout, match=r"has been locked by another process for 0\.2 s"),
            TasksFile(str(path), patience_sec=0.2).changing(),
        ):
            pass
    claim(TasksFile(str(path)), "S01")


def test_many_threads_lose_nothing(path: Path) -> None:
    """M6."""

    def claim_every_fifth(first: int) -> None:
        for number in range(first, 50, 5):
            claim(TasksFile(str(path)), f"S{number:02}")

    threads = [threading.Thread(target=claim_every_fifth, args=(first,)) for first in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {task.status for task in TasksFile(str(path)).load().tasks.values()} == {"claimed"}


_FOR_EVER = """
import sys
from mam_core.dispatch.tasks import Task, TaskStatus
from mam_core.dispatch.tasks_file import TasksFile
file = TasksFile(sys.argv[1])
print("begun", flush=True)
turn = 0
while True:
    turn += 1
    with file.changing() as draft:
        for name in ("S01", "S49"):
            draft.put(name, Task(TaskStatus.FAILED, error=str(turn)))
"""


def _is_another(path: Path, inode: int) -> bool:
    return path.stat().st_ino != inode


def test_whoever_is_killed_while_writing_leaves_a_whole_file(path: Path) -> None:
    """M27: the old text or the new one, never a part, and nothing lies about after the next."""
    for _ in range(4):
        command = [sys.executable, "-c", _FOR_EVER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            before = path.stat().st_ino
            eventually(partial(_is_another, path, before), "it writes")
            found = TasksFile(str(path)).load().tasks
            assert found["S01"].error == found["S49"].error
            writer.send_signal(signal.SIGKILL)
        found = TasksFile(str(path)).load().tasks
        assert found["S01"].error == found["S49"].error
    claim(TasksFile(str(path)), "S02")
    assert sorted(os.listdir(path.parent)) == [path.name, f"{path.name}.lock"]


def test_no_task_list_and_no_flock_program_is_in_the_code() -> None:
    """M14, M26: one program for all nodes, and a lock that macOS has as well."""
    folder = Path(mam_core.dispatch.__file__).parent
    for module in folder.glob("*.py"):
        words = {
            node.value
            for node in ast.walk(ast.parse(module.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not words & {"flock", "S01", "mac1", "mac2"}, module
