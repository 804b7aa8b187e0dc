"""What bad input gets: a clear sentence, the documented exit code, and nothing is changed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.cli.conftest import Mam, Process, is_one_sentence
from tests.support.rows import every_row
from tests.support.strangers import as_nobody, python_for_nobody

BAD_IDS = ["../x", "", "x" * 300, "a\0b", "a b", "a/b", "a/../b", "-", ".lock", "a.json", "é"]
VERBS_WITH_A_JOB = [
    ["get"],
    ["status"],
    ["status", "--set", "error"],
    ["logs"],
    ["cancel"],
    ["retry"],
    ["edit", "--prompt", "p"],
    ["clean"],
    ["heartbeat"],
    ["why"],
    ["diff"],
]


def test_bad_ids(mam: Mam) -> None:
    """A10, E14"""
    mam.register()
    before = snapshot(mam.folder)
    with every_row() as rows:
        for verb, bad in product(VERBS_WITH_A_JOB, BAD_IDS):
            with rows.row(verb, bad):
                answer = mam(*verb, "--job", bad)
                assert (answer.code, answer.out) == (1, "")
                assert "mam: " in answer.err
                assert "\0" not in answer.err
                assert len(answer.err) < 400
                assert verb != ["get"] or is_one_sentence(answer.err)
                assert snapshot(mam.folder) == before


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file of ours but the index, which is derived and may change at any time."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".index" not in path.parts
    }


class TestStrangeFiles:
    """A18: named like records, and none."""

    @pytest.fixture
    def strange(self, mam: Mam) -> tuple[Mam, str]:
        good = mam.register("the good one")
        place = mam.registry
        (place / "empty.json").write_bytes(b"")
        (place / "half.json").write_text('{"schema_version": 1, "job_id": "half"')
        (place / "deep.json").write_text("[" * 200_000)
        (place / "latin.json").write_bytes(b'{"prompt": "\xe9"}')
        (place / "other.json").write_text(mam.path(good).read_text())
        (place / "folder.json").mkdir()
        (place / "link.json").symlink_to(mam.path(good))
        (place / "dangling.json").symlink_to("nowhere")
        os.mkfifo(place / "pipe.json")
        (place / "bad name.json").write_text("{}")
        (place / ".hidden.json").write_text("x")
        (place / ".half.1234.tmp").write_text("x")
        (place / "notes.txt").write_text("x")
        (place / "half.events.log").write_text("x")
        return mam, good

    NAMES = frozenset(
        {"empty", "half", "deep", "latin", "other", "folder", "link", "dangling", "pipe"}
        | {"bad name"}
    )

    def test_are_one_row_each_and_a_few_warnings(self, strange: tuple[Mam, str]) -> None:
        mam, good = strange
        rows = {row["job_id"]: row["status"] for row in mam.ok("list", "--json").json}
        assert rows == {good: "pending", **dict.fromkeys(self.NAMES, "unreadable")}
        answer = mam.ok("list")
        assert len(answer.lines) == 2 + len(self.NAMES)
        warnings = answer.err.splitlines()
        assert all(line.startswith("mam: warning: ") for line in warnings)
        assert [" cannot be read" in line for line in warnings] == [True] * 6
        assert warnings[5].startswith(f"mam: warning: … and {len(self.NAMES) - 5} more like this")

    def test_do_not_keep_anybody_from_working(self, strange: tuple[Mam, str]) -> None:
        mam, good = strange
        second = mam.register("another")
        assert mam.ok("pick", "--label", "tmux:a").out == good + "\n"
        assert mam.ok("pick", "--label", "tmux:a").out == second + "\n"
        mam.ok("cancel", good)
        mam.ok("clean", good)
        mam.ok("logs", "--list")

    def test_are_never_changed(self, strange: tuple[Mam, str]) -> None:
        mam, _ = strange
        before = snapshot(mam.registry)
        for name in sorted(self.NAMES):
            for verb in VERBS_WITH_A_JOB:
                if verb == ["logs"]:
                    continue  # asks the audit log, not the record
                answer = mam(*verb, "--job", name)
                assert (answer.code, answer.out) == (1, ""), (verb, name)
                assert "mam: " in answer.err
        assert snapshot(mam.registry) == before


class TestTheFolder:
    def test_that_is_a_file_is_named(self, mam: Mam) -> None:
        (mam.folder / ".mam").mkdir(mode=0o700)
        mam.registry.write_text("in the way")
        for words in (["list"], ["pick", "--label", "l"], ["get", "x"], ["logs", "--list"]):
            answer = mam(*words)
            assert (answer.code, answer.out) == (1, "")
            assert is_one_sentence(answer.err)
            assert "not a folder" in answer.err

    def test_that_is_a_link_is_refused(self, mam: Mam, tmp_path: Path) -> None:
        (mam.folder / ".mam").mkdir(mode=0o700)
        (tmp_path / "real").mkdir()
        mam.registry.symlink_to(tmp_path / "real")
        answer = mam("register", "--prompt", "p", "--agent", "a", "--label", "l")
        assert answer.code == 1
        assert "symbolic link" in answer.err

    def test_that_was_deleted_is_made_anew_by_register_only(self, mam: Mam) -> None:
        job_id = mam.register()
        shutil.rmtree(mam.registry)
        assert mam("get", job_id).code == 1
        assert mam("cancel", job_id).code == 1
        assert mam("pick", "--label", "tmux:a").code == 3
        assert mam.ok("list").lines[1:] == []
        assert not mam.registry.exists()
        mam.register()
        assert mam.registry.exists()

    def test_on_a_network_file_system_is_refused_unless_allowed(
        self, mam: Mam, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """B7"""
        monkeypatch.setattr("mam_core.stores.mounts.file_system_of", lambda folder: "nfs4")
        monkeypatch.setattr("mam_core.stores.mounts._known", set())
        words = ["register", "--prompt", "p", "--agent", "a", "--label", "l"]
        answer = mam(*words)
        assert (answer.code, answer.out) == (1, "")
        assert "--allow-network-fs" in answer.err
        mam.ok("--allow-network-fs", *words)
        mam.ok(*words, "--allow-network-fs")

    def test_that_may_only_be_read_is_listed_and_not_changed(
        self, open_ground: Mam, as_a_stranger: Callable[..., Process]
    ) -> None:
        mam = open_ground
        (job_id,) = (path.stem for path in mam.registry.glob("*.json"))
        mam.registry.chmod(0o755)
        mam.path(job_id).chmod(0o644)
        before = snapshot(mam.registry)
        listed = as_a_stranger("list")
        assert listed.returncode == 0, listed.stderr
        assert job_id in listed.stdout
        assert as_a_stranger("get", job_id).returncode == 0
        for words in (
            ["register", "--prompt", "p", "--agent", "a", "--label", "l"],
            ["pick", "--label", "tmux:a"],
            ["cancel", job_id],
            ["status", job_id, "--set", "error"],
            ["pause", "--all"],
        ):
            answer = as_a_stranger(*words)
            assert (answer.returncode, answer.stdout) == (1, "")
            assert is_one_sentence(answer.stderr)
        assert snapshot(mam.registry) == before

    def test_that_may_not_even_be_entered_is_named(
        self, as_a_stranger: Callable[..., Process]
    ) -> None:
        for words in (["list"], ["pick", "--label", "l"], ["get", "x"]):
            answer = as_a_stranger(*words)
            assert (answer.returncode, answer.stdout) == (1, "")
            assert is_one_sentence(answer.stderr)


@pytest.fixture
def open_ground(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Mam]:
    """A project that other users can reach; the folders that pytest makes are closed to them."""
    with tempfile.TemporaryDirectory(prefix="mam-open-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        monkeypatch.chdir(folder)
        mam = Mam(folder, capsys)
        mam.register("the first")
        (folder / ".mam").chmod(0o755)
        yield mam
        monkeypatch.chdir("/")


@pytest.fixture
def as_a_stranger(open_ground: Mam) -> Callable[..., Process]:
    """Runs ``mam`` as a user who owns nothing here."""
    python = python_for_nobody()

    def run(*argv: str) -> Process:
        folder = str(open_ground.folder)
        answer = as_nobody(python, "-m", "mam_core.cli.main", *argv, cwd=folder, HOME=folder)
        assert "Traceback" not in answer.stderr
        return answer

    return run
