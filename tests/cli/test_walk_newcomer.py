"""A newcomer's walk: what a first user did by accident, and what must not come of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Mam, Process, environment, execute

Run = Callable[..., Process]


class TestTheWrongFolder:
    """A2: a mistyped --registry-dir names somebody's folder, not a registry."""

    @pytest.fixture
    def someones(self, folder: Path) -> Path:
        place = folder / "someones"
        place.mkdir()
        place.chmod(0o755)
        (place / "notes.txt").write_text("mine")
        return place

    @pytest.mark.parametrize("verb", [["list"], ["logs", "--list"], ["get", "x"], ["why", "x"]])
    def test_looking_leaves_it_as_it_is(self, mam: Mam, someones: Path, verb: list[str]) -> None:
        mam(*verb, "--registry-dir", someones)
        assert someones.stat().st_mode & 0o777 == 0o755
        assert sorted(path.name for path in someones.iterdir()) == ["notes.txt"]

    def test_nor_does_the_tab_key_touch_it(self, mam: Mam, someones: Path) -> None:
        line = ["mam", "get", "--registry-dir", str(someones), ""]
        mam("__complete", *line)
        assert someones.stat().st_mode & 0o777 == 0o755

    def test_an_empty_name_is_no_folder(self, mam: Mam) -> None:
        """A script's unset variable must not fall back to the registry that happens to be here."""
        mam.register()
        assert mam("list", "--registry-dir", "").code == 2


class TestStrangeRecords:
    """A18: one bad file is one row and one warning, never the end of the registry."""

    def test_a_name_that_is_no_unicode(self, mam: Mam) -> None:
        good = mam.register()
        os.close(os.open(os.fsencode(mam.registry) + b"/bad\xff.json", os.O_CREAT | os.O_WRONLY))
        assert good in mam.ok("list").out
        assert mam.ok("pick", "--agent-session", "tmux:a").out.strip() == good

    @pytest.mark.parametrize("field", ["order", "last_seq", "attempt", "revision", "priority"])
    def test_a_number_that_no_index_can_hold(self, mam: Mam, field: str) -> None:
        good = mam.register()
        mam.write("huge", **{"agent_session": "tmux:b", field: 10**30})
        assert good in mam.ok("list").out
        assert mam.ok("pick", "--agent-session", "tmux:a").out.strip() == good

    def test_a_mended_record_is_one_row(self, mam: Mam) -> None:
        job = mam.register()
        whole = mam.path(job).read_bytes()
        mam.path(job).write_bytes(b"")
        (mam.registry / "x").touch()  # the folder changed, so everything is looked at
        mam.ok("list")
        mam.path(job).write_bytes(whole)
        mam.ok("cancel", job)
        assert [row["status"] for row in mam.ok("list", "--json").json] == ["cancelled"]

    def test_a_stray_file_in_the_archive_does_not_keep_us_from_undoing(self, mam: Mam) -> None:
        job = mam.register()
        mam.ok("cancel", job)
        mam.ok("clean")
        (mam.registry / ".archive" / ".DS_Store").touch()
        assert mam.ok("clean", "--undo").lines == [job]

    def test_a_link_in_place_of_the_index_makes_no_file_elsewhere(self, mam: Mam) -> None:
        mam.register()
        for path in (mam.registry / ".index").iterdir():
            path.unlink()
        (mam.registry / ".index" / "jobs.sqlite").symlink_to(mam.folder / "elsewhere")
        mam("list")
        assert not (mam.folder / "elsewhere").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
class TestAnIdThatNobodyGot:
    """E1, E8: what was done although its id could not be printed is at least named."""

    def test_registered(self, mam: Mam, process: Run) -> None:
        said = into_full(process, "register", "--prompt", "p", "--agent", "a", "--label", "s")
        (job,) = (path.stem for path in mam.registry.glob("*.json"))
        assert said.returncode == 1
        assert job in said.stderr

    def test_picked(self, mam: Mam, process: Run) -> None:
        job = mam.register()
        said = into_full(process, "pick", "--agent-session", "tmux:a")
        assert said.returncode == 1
        assert job in said.stderr or mam.record(job)["status"] == "pending"


def into_full(process: Run, *argv: str) -> Process:
    with open("/dev/full", "w") as full:
        return process(*argv, capture_output=False, stdout=full, stderr=subprocess.PIPE)


class TestDecisions:
    def test_a_store_that_we_do_not_have_is_refused(
        self, mam: Mam, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Decision 24: never the files store in the place of the one that was asked for."""
        monkeypatch.setenv("MAM_STORE", "postgresql://db.example/jobs")
        assert mam("list").code == 1

    def test_a_public_broker_is_warned_of(self, mam: Mam) -> None:
        """Decision 2"""
        job = ["--prompt", "p", "--agent", "a", "--agent-session", "s"]
        assert "warning" in mam.ok("register", *job, "--broker-host", "broker.emqx.io").err

    def test_a_colliding_artifact_is_refused(self, mam: Mam) -> None:
        """Decision 22"""
        mam.register("one", "--artifact", "out.txt")
        twin = ["--prompt", "two", "--agent", "a", "--agent-session", "s"]
        assert mam("register", *twin, "--artifact", "./out.txt").code in (1, 2)

    @pytest.mark.parametrize("prompt", ["half \ud800 pair", "byte \udcff"], ids=ascii)
    def test_a_prompt_that_no_agent_can_be_given_is_refused(self, mam: Mam, prompt: str) -> None:
        """A14, decision 16: an agent gets the prompt's bytes, so it must have some."""
        job = ["--agent", "a", "--agent-session", "s"]
        assert mam("register", "--prompt", prompt, *job).code == 2

    def test_it_runs_as_a_module(self, folder: Path) -> None:
        """E17"""
        said = execute([sys.executable, "-m", "mam_core", "list"], cwd=folder, env=environment())
        assert said.returncode == 0, said.stderr


class TestSentences:
    def test_a_narrow_table_keeps_the_prompt(
        self, mam: Mam, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = ["--prompt", "refactor the parser", "--agent", "claude-code"]
        mam.ok("register", *job, "--agent-session", "tmux:claude", "--group", "docs")
        monkeypatch.setenv("COLUMNS", "40")
        assert "refac" in mam.ok("list").out

    def test_resuming_all_tells_what_is_still_held_back(self, mam: Mam) -> None:
        mam.ok("pause", "--agent", "shell")
        mam.ok("pause", "--all")
        assert "shell" in mam.ok("resume", "--all").err

    def test_a_missing_option_is_named_as_it_is_typed(self, mam: Mam) -> None:
        said = mam("register", "--prompt", "p", "--agent", "a")
        assert said.code == 2
        assert "--agent-session" in said.err
