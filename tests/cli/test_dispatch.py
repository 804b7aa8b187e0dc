"""``mam dispatch`` at the prompt: what it takes, what it prints, and what it says of mistakes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mam_core.dispatch import tasks
from mam_core.dispatch.layout import Whole, compose, parse
from mam_core.dispatch.naming import Surroundings
from mam_core.dispatch.tasks import Task, TaskStatus
from tests.cli.conftest import Mam, is_one_sentence
from tests.support.rows import each_row

PENDING = Task(TaskStatus.PENDING)


@pytest.fixture
def place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = folder / "tasks.json"
    monkeypatch.setenv("REGISTRY", str(path))
    monkeypatch.setenv("NODE_NAME", "mac1")
    return path


def write(place: Path, **found: Task) -> None:
    place.write_bytes(compose(Whole({"specs_dir": "specs"}, found)))


def test_the_documents_place_is_the_default(
    mam: Mam, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M1: below the home folder, which gets its Downloads if it has none."""
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("REGISTRY", raising=False)
    (folder / "specs").mkdir()
    (folder / "specs" / "S01-x.md").write_text("x")
    mam.ok("dispatch", "init", "specs")
    assert (folder / "Downloads" / "dispatch-registry.json").is_file()
    assert mam.ok("dispatch", "summary").out == "pending: 1\n"
    assert mam.ok("dispatch", "summary", "--file", "~/Downloads/dispatch-registry.json").out


def test_the_name_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """M10, M11: the variables, and what is said without them."""
    for name in ("NODE_NAME", "API_MODE"):
        monkeypatch.delenv(name, raising=False)
    assert Surroundings.of() == (os.uname().nodename.split(".")[0], "direct")
    assert Surroundings.of({"NODE_NAME": "gcp", "API_MODE": "zai"}) == ("gcp", "zai")


class TestInit:
    def test_what_cannot_be_added_is_told_and_is_no_success(self, mam: Mam, place: Path) -> None:
        """M16, M17."""
        (mam.folder / "specs").mkdir()
        for name in ("S01-a.md", "S01-b.md", "S02.md", "S\x1b[2J.md"):
            (mam.folder / "specs" / name).write_text("x")
        answer = mam("dispatch", "init", "specs")
        assert answer.code == 1
        assert "1 task added to 0 in" in answer.err
        assert "S01-a.md and S01-b.md both want to be it" in answer.err
        assert "\x1b" not in answer.err
        assert list(parse(place.read_bytes()).tasks) == ["S02"]


class TestLooking:
    def test_an_empty_registry_is_an_empty_line(self, mam: Mam, place: Path) -> None:
        """M20: as jq has it."""
        write(place)
        assert mam.ok("dispatch", "summary").out == "\n"
        assert mam.ok("dispatch", "status").out == ""
        assert mam.ok("dispatch", "status", "--json").json == []

    def test_foreign_names_do_no_harm(self, mam: Mam, place: Path) -> None:
        write(place, **{"S\x1b[2J": PENDING})
        assert mam.ok("dispatch", "status").out == "pending  1  S\\x1b[2J\n"

    @each_row("text", ["", "{", '{"version": 1, "tasks": {"S01": {}}}'])
    @each_row("act", ["status", "summary", "release", "run"])
    def test_what_is_no_registry_is_a_sentence_and_stays(
        self, mam: Mam, place: Path, act: str, text: str
    ) -> None:
        """M3."""
        place.write_text(text)
        answer = mam("dispatch", act)
        assert answer.code == 1
        assert f"{place} cannot be read" in answer.err
        assert place.read_text() == text


@each_row(
    ("words", "said"),
    [
        (["init"], "usage: mam dispatch init SPECS_DIR"),
        (["init", "a", "b"], "usage: mam dispatch init SPECS_DIR"),
        (["summary", "x"], "usage: mam dispatch summary"),
        (["sync"], "usage: mam dispatch sync REMOTE"),
        (["status", "--yes"], "--yes means nothing to mam dispatch status"),
        (["run", "--older-than", "1h"], "--older-than means nothing to mam dispatch run"),
        (["run", "--slots", "0"], "--slots must be between 1 and 256"),
        (["run", "--every", "30s"], "there is nothing to sync with"),
        (["run", "S01", "--retry-failed"], "a named task is run again anyway"),
        (["summary", "--file", ""], "--file is given without a name"),
        (["sync", "--dry run"], "unknown option '--dry run'"),
        (["export", "--to x.json"], "unknown option '--to x.json'"),
        (["init", "-n 3"], "(for a file of that name: './-n 3')"),
        (["dance"], "invalid choice: 'dance'"),
    ],
)
def test_a_wrong_word_is_one_sentence(mam: Mam, place: Path, words: list[str], said: str) -> None:
    answer = mam("dispatch", *words)
    assert answer.code == 2
    assert said in answer.err
    assert is_one_sentence(answer.err)
    assert not place.exists()
    assert not any(path.name.startswith("-") for path in place.parent.iterdir())


class TestHandingOn:
    def test_tasks_become_jobs_that_wait_and_each_only_once(self, mam: Mam, place: Path) -> None:
        """Decision 4: the tasks stay as they are until a worker claims them."""
        (mam.folder / "specs").mkdir()
        for name in ("S01.md", "S02.md"):
            (mam.folder / "specs" / name).write_text(f"do {name}")
        failed = tasks.failed(tasks.claimed(PENDING, "mac2", 7, "job", 1e9), "exit")
        write(place, S01=PENDING, S02=failed, S03=tasks.completed(failed, 1e9))
        before = place.read_bytes()
        first = mam.ok("dispatch", "import", "--label", "tmux:a").lines
        assert [line.split()[0] for line in first] == ["S01"]
        again = mam.ok("dispatch", "import", "--label", "tmux:a", "--retry-failed").lines
        assert (again[0], again[1].split()[0]) == (first[0], "S02")
        assert place.read_bytes() == before
        record = mam.record(first[0].split()[1])
        assert (record["prompt"], record["group"]) == ("do S01.md", "dispatch")
        assert record["key"] == f"dispatch:S01@{place}"
        refused = mam("dispatch", "import", "S03")
        assert (refused.code, "is completed by mac2" in refused.err) == (1, True)

    def test_an_agent_that_nothing_knows_is_said(self, mam: Mam, place: Path) -> None:
        (mam.folder / "specs").mkdir()
        (mam.folder / "specs" / "S01.md").write_text("do it")
        write(place, S01=PENDING)
        answer = mam.ok("dispatch", "import", "--agent", "claude")
        assert "warning: unknown agent 'claude'. Did you mean claude-code?" in answer.err
        assert mam.record(answer.lines[0].split()[1])["agent"] == "claude"

    def test_jobs_are_written_as_tasks(self, mam: Mam, place: Path) -> None:
        """Decision 4, X3, X4, X10: pending, claimed, running, completed, failed and its reason."""
        ids = [mam.register(f"job {n}") for n in range(4)]
        for _ in range(2):
            mam.ok("pick", "--label", "tmux:a")
        mam.ok("status", ids[1], "--set", "error")
        mam.ok("cancel", ids[2])
        whole = parse(mam.ok("dispatch", "export").out.encode())
        assert [whole.tasks[job_id].status for job_id in ids] == [
            *("claimed", "failed", "failed", "pending"),
        ]
        assert whole.tasks[ids[1]].error == "override"
        assert whole.tasks[ids[2]].error == "cancelled"
        assert str(whole.tasks[ids[0]].started_at)[-6] in "+-"
        mam.ok("dispatch", "export", "out.json")
        assert json.loads((mam.folder / "out.json").read_text())["version"] == 1
        assert "is already there" in mam("dispatch", "export", "out.json").err
