"""From a folder of specs to tasks, and from a task to the text of its spec."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mam_core.dispatch import tasks
from mam_core.dispatch.specs import init, prompt_of, specs_folder
from mam_core.dispatch.tasks import DispatchError, Task, TaskStatus
from mam_core.dispatch.tasks_file import TasksFile


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "specs"
    made.mkdir()
    return made


@pytest.fixture
def file(tmp_path: Path) -> TasksFile:
    return TasksFile(str(tmp_path / "dispatch-registry.json"))


def content(file: TasksFile) -> dict[str, object]:
    data: dict[str, object] = json.loads(Path(file.path).read_text())
    return data


class TestInit:
    def test_every_spec_is_a_pending_task_under_its_name_up_to_the_first_dash(
        self, folder: Path, file: TasksFile
    ) -> None:
        """M15; what does not begin with S or is no .md is none."""
        for name in ("S02-b-c.md", "S01-a.md", "S10.md", "T01-a.md", "S03-a.txt", "README.md"):
            (folder / name).write_text("x")
        (folder / "S04-folder.md").mkdir()
        made = init(file, str(folder))
        assert made.added == ["S01", "S02", "S10"]
        assert content(file)["tasks"] == {
            "S01": {"status": "pending", "spec": "S01-a.md"},
            "S02": {"status": "pending", "spec": "S02-b-c.md"},
            "S10": {"status": "pending", "spec": "S10.md"},
        }

    def test_an_empty_folder_makes_a_registry_without_tasks(
        self, folder: Path, file: TasksFile
    ) -> None:
        """M16: and no task called S*."""
        assert init(file, str(folder)).added == []
        assert content(file)["tasks"] == {}

    def test_odd_names_make_valid_json(self, folder: Path, file: TasksFile) -> None:
        """M16: the seed's script breaks at the first quote."""
        names = ['S1"x-a.md', "S2 b-c.md", "S3'.md", "Sé-ü.md", "S$(x)-\\.md", "S.md"]
        for name in names:
            (folder / name).write_text("x")
        made = init(file, str(folder))
        assert set(made.added) == {'S1"x', "S2 b", "S3'", "Sé", "S$(x)", "S"}
        assert set(file.load().tasks) == set(made.added)

    def test_names_that_would_harm_a_terminal_are_reported(
        self, folder: Path, file: TasksFile
    ) -> None:
        """M16."""
        (folder / "S1\x1b[2J-a.md").write_text("x")
        with open(os.fsencode(folder) + b"/S2\xff-a.md", "w"):
            pass
        made = init(file, str(folder))
        assert (made.added, len(made.found.odd)) == ([], 2)

    def test_two_specs_of_one_task_are_reported_and_neither_is_taken(
        self, folder: Path, file: TasksFile
    ) -> None:
        """M17: the seed's script loses the first."""
        for name in ("S01-a.md", "S01-b.md", "S02-a.md"):
            (folder / name).write_text("x")
        made = init(file, str(folder))
        assert made.found.doubles == {"S01": ["S01-a.md", "S01-b.md"]}
        assert list(file.load().tasks) == ["S02"]

    def test_a_second_time_only_adds(self, folder: Path, file: TasksFile) -> None:
        """M18, INV-2."""
        for name in ("S01-a.md", "S02-a.md"):
            (folder / name).write_text("x")
        init(file, str(folder))
        with file.changing() as draft:
            draft.put("S01", tasks.claimed(Task(TaskStatus.PENDING), "mac2", 7, "job", 1e9))
        before = file.load().tasks["S01"]
        (folder / "S03-a.md").write_text("x")
        (folder / "S02-a.md").rename(folder / "S02-b.md")
        made = init(file, str(folder))
        assert (made.added, made.kept) == (["S03"], 2)
        assert made.renamed == {"S02": ("S02-a.md", "S02-b.md")}
        assert file.load().tasks["S01"] == before

    def test_a_folder_that_is_not_there_is_a_sentence_and_no_file(
        self, tmp_path: Path, file: TasksFile
    ) -> None:
        with pytest.raises(DispatchError, match="cannot be read: no such file"):
            init(file, str(tmp_path / "none"))
        assert not file.exists()


class TestPrompt:
    def test_the_folder_is_remembered_and_found_from_another_home(
        self, tmp_path: Path, file: TasksFile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """M12: on another node the same place is below another home."""
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / "specs").mkdir()
        init(file, "~/specs")
        header = file.load().header
        assert header["specs_dir"] == "~/specs"
        monkeypatch.setenv("HOME", "/other")
        assert specs_folder(header) == "/other/specs"
        assert specs_folder(header, str(tmp_path)) == str(tmp_path)
        with pytest.raises(DispatchError, match="no specs folder is known"):
            specs_folder({})

    def test_a_task_without_a_spec_has_the_one_of_its_name(self, folder: Path) -> None:
        """M4: a pending task may have its status only."""
        (folder / "S15-x.md").write_text("do it")
        assert prompt_of("S15", Task(TaskStatus.PENDING), str(folder)) == "do it"
        with pytest.raises(DispatchError, match="S16 names no spec"):
            prompt_of("S16", Task(TaskStatus.PENDING), str(folder))

    @pytest.mark.parametrize(
        ("spec", "data", "words"),
        [
            ("../secret.md", b"x", "is no name of a file"),
            ("/etc/passwd", b"x", "is no name of a file"),
            ("S01-none.md", None, "no such file"),
            ("S01-\0.md", None, "embedded null byte"),
            ("S01-\ud800.md", None, "surrogates not allowed"),
            ("S01-x.md", b" \n", "is empty"),
            ("S01-x.md", b"\xff", "is not UTF-8"),
            ("S01-x.md", b"x" * (2**20 + 1), "more than 1 MiB"),
        ],
    )
    def test_a_spec_that_cannot_be_given_is_a_sentence(
        self, folder: Path, spec: str, data: bytes | None, words: str
    ) -> None:
        (folder.parent / "secret.md").write_text("secret")
        if data is not None and "/" not in spec:
            (folder / spec).write_bytes(data)
        with pytest.raises(DispatchError, match=words):
            prompt_of("S01", Task(TaskStatus.PENDING, spec=spec), str(folder))
