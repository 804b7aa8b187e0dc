"""A registry that somebody removed: said by every command until a person accepts it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Mam

Process = subprocess.CompletedProcess[str]

GONE = "held jobs and is gone"
ANEW = "a new one was started in its place"


@pytest.fixture
def removed(mam: Mam) -> Mam:
    mam.register("lost")
    shutil.rmtree(mam.folder / ".mam")
    return mam


@pytest.mark.parametrize("words", [("list",), ("list", "--json"), ("audit",), ("attention",)])
def test_is_said_by_whoever_reads(removed: Mam, words: tuple[str, ...]) -> None:
    answer = removed(*words)
    assert GONE in answer.err
    assert "mam init --again" in answer.err
    assert answer.code == 0 or words[0] == "audit"
    assert not (removed.folder / ".mam").exists()


def test_takes_new_jobs_and_goes_on_saying_it(removed: Mam) -> None:
    """Refused, that job would be lost as well; scripts may remove a registry on purpose."""
    job_id = removed.register("new")
    for words in (("list",), ("get", job_id), ("pick", "--label", "tmux:a")):
        assert ANEW in removed.ok(*words).err
    shutil.rmtree(removed.folder / ".mam")
    assert ANEW in removed.ok("list").err


@pytest.mark.parametrize(
    "words", [("work", "--label", "a", "--drain"), ("work", "--label", "a", "--once")]
)
def test_is_not_forgotten_when_a_command_makes_the_folder_again(
    removed: Mam, words: tuple[str, ...]
) -> None:
    """As a worker of cron does before anybody looks."""
    removed(*words)
    assert (removed.folder / ".mam").exists()
    assert ANEW in removed.ok("list").err


def test_what_live_commands_have_made_again_is_no_obstacle(removed: Mam) -> None:
    """A worker keeps its own files in the registry folder, and makes some of them again."""
    removed.registry.mkdir(parents=True, mode=0o700)
    for name in (".broker", ".outbox"):
        (removed.registry / name).mkdir(mode=0o700)
    for name in (".acts", ".answerer", ".deploy.lock"):
        (removed.registry / name).touch(mode=0o600)
    assert GONE in removed.ok("list").err
    job_id = removed.register("new")
    assert ANEW in removed.ok("get", job_id).err


def test_that_a_worker_made_again_before_all_was_gone_is_missed(mam: Mam) -> None:
    """Its lock was made again while records were still there, which went after that."""
    job_id = mam.register("lost")
    (mam.registry / f"{job_id}.json").unlink()
    assert (mam.registry / ".lock").exists()
    assert ANEW in mam.ok("list").err
    mam.register("new")
    assert ANEW in mam.ok("list").err
    mam.ok("init", "--again")
    assert not mam.ok("list").err


def test_one_whose_jobs_were_all_cleaned_is_not_missed(mam: Mam) -> None:
    job_id = mam.register("over")
    mam.ok("cancel", job_id)
    mam.ok("clean", job_id)
    assert not mam.ok("list").err


@pytest.mark.parametrize("target", ["elsewhere/jobs", "sqlite:elsewhere/jobs.db"])
def test_one_that_was_moved_is_missed_only_in_its_new_place(mam: Mam, target: str) -> None:
    mam.register("moved")
    mam.ok("migrate", "--from", str(mam.registry), "--to", target)
    assert not mam.ok("list").err
    there = ("--store", target) if ":" in target else ("--registry-dir", target)
    assert not mam.ok(*there, "list").err
    shutil.rmtree(mam.folder / "elsewhere")
    assert GONE in mam.ok(*there, "list").err


def test_a_move_does_not_accept_for_a_person_that_jobs_were_lost(removed: Mam) -> None:
    removed.register("new")
    removed.ok("migrate", "--from", str(removed.registry), "--to", "elsewhere/jobs")
    assert ANEW in removed.ok("list").err


def test_one_within_another_is_missed_as_well(mam: Mam, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its jobs would go to the registry of the folder above, without a word."""
    mam.register("outer")
    inner = mam.folder / "inner"
    inner.mkdir()
    path = str(inner / ".mam" / "jobs")
    mam.ok("--registry-dir", path, "register", "--prompt", "x", "--agent", "shell", "--label", "a")
    monkeypatch.chdir(inner)
    shutil.rmtree(inner / ".mam")
    answer = mam.ok("list")
    assert GONE in answer.err
    assert "outer" not in answer.out


@pytest.mark.parametrize("with_a_job", [True, False])
def test_until_a_person_accepts_it(removed: Mam, with_a_job: bool) -> None:
    if with_a_job:
        removed.register("new")
    assert "accepted" in removed.ok("init", "--again").err
    assert removed.ok("list").err == ""
    assert "nothing to accept" in removed.ok("init", "--again").err
    if not with_a_job:
        removed.register("another")
    assert removed.ok("list").err == ""
    shutil.rmtree(removed.folder / ".mam")
    assert GONE in removed.ok("list").err


def test_an_agent_cannot_accept_it(removed: Mam, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAM_JOB_ID", "abcd1234")
    answer = removed("init", "--again")
    assert answer.code == 1
    assert "may not replace a registry that was removed" in answer.err
    monkeypatch.delenv("MAM_JOB_ID")
    assert GONE in removed.ok("list").err


def test_is_said_in_every_folder_of_its_project(
    removed: Mam, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = removed.folder / "src" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert GONE in removed.ok("list").err
    removed.register("new")
    assert removed.registry.is_dir()
    assert not (below / ".mam").exists()


def test_a_backup_that_is_brought_back_ends_it(mam: Mam) -> None:
    job_id = mam.register("kept")
    kept = mam.path(job_id).read_bytes()
    shutil.rmtree(mam.folder / ".mam")
    mam.registry.mkdir(parents=True, mode=0o700)
    mam.path(job_id).write_bytes(kept)
    mam.path(job_id).chmod(0o600)
    assert mam.ok("list").err == ""
    assert mam.ok("pick", "--label", "tmux:a").err == ""


def test_a_folder_that_never_was_one_is_an_empty_list(mam: Mam) -> None:
    assert mam.ok("list").err == ""
    assert not list(Path(os.environ["HOME"]).rglob("registries"))


def test_a_database_file_that_is_gone(mam: Mam, tmp_path: Path) -> None:
    place = tmp_path / "jobs.sqlite"
    store = ("--store", f"sqlite:{place}")
    registering = ("--prompt", "x", "--agent", "shell", "--agent-session", "a")
    mam.ok(*store, "register", *registering)
    assert mam.ok(*store, "list").err == ""
    for file in tmp_path.glob("jobs.sqlite*"):
        file.unlink()
    assert GONE in mam.ok(*store, "list").err
    mam.ok(*store, "register", *registering)
    assert ANEW in mam.ok(*store, "list").err
    mam.ok(*store, "init", "--again")
    assert mam.ok(*store, "list").err == ""
    for file in tmp_path.glob("jobs.sqlite*"):
        file.unlink()
    assert GONE in mam.ok(*store, "list").err
    mam.ok(*store, "init", "--again")
    assert mam.ok(*store, "list").err == ""


def test_the_mark_is_the_persons_alone(mam: Mam) -> None:
    old = os.umask(0)
    try:
        mam.register()
    finally:
        os.umask(old)
    (mark,) = (path for path in Path(os.environ["HOME"]).rglob("registries/*/*") if path.is_file())
    assert mark.stat().st_mode & 0o777 == 0o600
    assert mark.read_text() == f"{mam.registry}\n"


def test_no_state_folder_is_no_obstacle(mam: Mam, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    mam.register()
    shutil.rmtree(mam.folder / ".mam")
    assert mam.ok("list").err == ""


def test_a_claim_costs_one_look_more(mam: Mam, process: Callable[..., Process]) -> None:
    """And nothing of the module that knows the marks is slow to load."""
    mam.register()
    looked = process(
        "pick", "--label", "tmux:a", env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    )
    assert "hashlib" not in looked.stderr
