"""`mam init`: a first configuration, asked for or taken, and nothing of a person's lost."""

from __future__ import annotations

import json
import os
import stat
import threading
import tomllib
from pathlib import Path

import pytest

from mam_core.errors import MamError
from mam_core.operations.init import Wish, init
from tests.cli.conftest import Mam, is_one_sentence
from tests.support.clinic import Terminal
from tests.support.rows import each_row


@pytest.fixture
def programs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are looked for."""
    place = folder.parent / "programs"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place))
    return place


def installed(programs: Path, *names: str) -> None:
    for name in names:
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)


def settings(folder: Path) -> dict[str, dict[str, object]]:
    return {
        name: table
        for name, table in tomllib.loads((folder / "mam.toml").read_text()).items()
        if table
    }


class TestWithoutQuestions:
    def test_the_first_agent_that_is_here_is_taken(self, mam: Mam, programs: Path) -> None:
        installed(programs, "codex", "gemini")
        answer = mam.ok("init", "--yes")
        assert answer.lines == [str(mam.folder / "mam.toml")]
        assert settings(mam.folder) == {
            "defaults": {
                "agent": "codex",
                "agent_session": "tmux:codex",
                "idle_timeout_sec": 900,
            }
        }
        assert (
            "Agents that were found here: codex, gemini." in (mam.folder / "mam.toml").read_text()
        )

    def test_jobs_of_a_coding_agent_may_be_silent_for_longer(
        self, mam: Mam, programs: Path
    ) -> None:
        """Decision 32: 900 s, unless the job says otherwise; a shell's job keeps 120 s."""
        installed(programs, "codex")

        def silence(*words: str) -> float:
            job_id = mam.ok("register", "--prompt", "x", *words).lines[0]
            return float(mam.record(job_id)["idle_timeout_sec"])

        mam.ok("init", "--yes", "--force", "--agent", "shell")
        assert silence() == 120
        mam.ok("init", "--yes", "--force")
        assert (silence(), silence("--idle-timeout", "60")) == (900, 60)

    def test_the_next_two_commands_are_named(self, mam: Mam, programs: Path) -> None:
        installed(programs, "claude")
        *_, first, second = mam.ok("init").err.splitlines()
        assert first.startswith("mam: next: mam submit --prompt ")
        assert second == "mam: then: mam doctor"

    def test_without_any_agent_the_next_command_runs_all_the_same(
        self, mam: Mam, programs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said = mam.ok("init").err
        assert "mam knows no agent that is installed here" in said
        assert "next: mam submit --agent shell --prompt 'echo hello'" in said
        assert settings(mam.folder) == {}

    def test_options_are_written_down(self, mam: Mam, programs: Path) -> None:
        answer = mam.ok(
            *("init", "--agent", "aider", "--label", "tmux:pair", "--slots", "3"),
            *("--timeout", "20m", "--store", "sqlite:jobs.sqlite", "--registry-dir", "elsewhere"),
        )
        assert "aider is not installed here" in answer.err
        assert settings(mam.folder) == {
            "defaults": {
                "agent": "aider",
                "agent_session": "tmux:pair",
                "timeout_sec": 1200,
                "idle_timeout_sec": 900,
                "group": "agents",
            },
            "groups": {"agents": {"slots": 3}},
            "store": {"url": "sqlite:jobs.sqlite", "registry_dir": str(mam.folder / "elsewhere")},
        }
        in_force = {row["key"]: row["value"] for row in mam.ok("config", "--json").json}
        assert in_force["groups.agents.slots"] == 3

    @each_row(
        "words",
        [
            ["--agent", "nobody"],
            ["--agent-session", "a\nb"],
            ["--slots", "0"],
            ["--slots", "many"],
            ["--timeout", "soon"],
            ["--store", "postgresql://ann:secret@db/jobs"],
            ["--config", ""],
        ],
    )
    def test_what_no_settings_may_say_is_refused(self, mam: Mam, words: list[str]) -> None:
        answer = mam("init", *words)
        assert answer.code in (1, 2)
        assert is_one_sentence(answer.err)
        assert "secret" not in answer.err
        assert os.listdir(mam.folder) == []


class TestAFileThatIsThere:
    def test_is_left_alone(self, mam: Mam) -> None:
        (mam.folder / "mam.toml").write_text("# mine\n")
        answer = mam("init")
        assert answer.code == 1
        assert is_one_sentence(answer.err)
        assert (mam.folder / "mam.toml").read_text() == "# mine\n"
        assert os.listdir(mam.folder) == ["mam.toml"]

    def test_is_kept_beside_the_new_one_by_force_also_when_it_is_broken(self, mam: Mam) -> None:
        (mam.folder / "mam.toml").write_text("this is no TOML")
        mam.ok("init", "--force", "--agent", "shell")
        assert (mam.folder / "mam.toml.bak").read_text() == "this is no TOML"
        assert settings(mam.folder)["defaults"]["agent"] == "shell"
        mam.ok("init", "--force", "--agent", "codex")
        assert (mam.folder / "mam.toml.bak").read_text() == "this is no TOML", "it stays"
        assert 'agent = "shell"' in (mam.folder / "mam.toml.bak1").read_text()

    def test_may_be_a_link_to_somewhere_else(self, mam: Mam) -> None:
        (mam.folder / "dotfiles").write_text("# mine\n")
        (mam.folder / "mam.toml").symlink_to("dotfiles")
        assert mam("init").code == 1
        mam.ok("init", "--force")
        assert (mam.folder / "dotfiles").read_text() == "# mine\n"
        assert (mam.folder / "mam.toml.bak").is_symlink()

    def test_in_a_folder_above_is_named(self, mam: Mam, monkeypatch: pytest.MonkeyPatch) -> None:
        (mam.folder / "mam.toml").write_text("")
        (mam.folder / "part").mkdir()
        monkeypatch.chdir(mam.folder / "part")
        assert f"{mam.folder}/mam.toml is not read here any more" in mam.ok("init").err

    def test_of_many_at_once_one_wins(self, folder: Path) -> None:
        refusals: list[str] = []

        def begin(number: int) -> None:
            try:
                init("mam.toml", Wish(agent_session=f"l{number}"))
            except MamError as problem:
                refusals.append(problem.message)

        threads = [threading.Thread(target=begin, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refusals) == 7
        assert all("is there already" in words for words in refusals)
        assert os.listdir(folder) == ["mam.toml"]


class TestTheFile:
    def test_can_be_read_by_whom_the_umask_allows(self, mam: Mam) -> None:
        old = os.umask(0)
        try:
            mam.ok("init")
        finally:
            os.umask(old)
        assert stat.S_IMODE((mam.folder / "mam.toml").stat().st_mode) == 0o644

    def test_that_cannot_be_written_is_one_sentence(self, mam: Mam) -> None:
        answer = mam("init", "--config", "no/such/folder/mam.toml")
        assert answer.code == 1
        assert is_one_sentence(answer.err)

    def test_names_its_schema_where_one_is_wanted(self, mam: Mam) -> None:
        answer = mam.ok("init", "--schema")
        schema = json.loads((mam.folder / "mam.schema.json").read_text())
        assert answer.lines[1] == str(mam.folder / "mam.schema.json")
        assert (mam.folder / "mam.toml").read_text().startswith("#:schema ./mam.schema.json\n")
        assert schema == mam.ok("config", "--schema").json


class TestOnATerminal:
    def test_it_asks_and_takes_no_nonsense(self, folder: Path, programs: Path) -> None:
        installed(programs, "claude")
        person = Terminal("init", cwd=folder)
        person.answer("which one runs your jobs? [claude-code]", "nobody")
        person.answer("which one runs your jobs? [claude-code]", "")
        person.answer("the label of its sessions? [tmux:claude]", "tmux:night")
        person.answer("how many jobs may run at once? [no limit]", "lots")
        person.answer("how many jobs may run at once? [no limit]", "4")
        assert person.code() == 0
        assert settings(folder) == {
            "defaults": {
                "agent": "claude-code",
                "agent_session": "tmux:night",
                "idle_timeout_sec": 900,
                "group": "agents",
            },
            "groups": {"agents": {"slots": 4}},
        }

    def test_whoever_goes_away_has_written_nothing(self, folder: Path, programs: Path) -> None:
        person = Terminal("init", cwd=folder)
        person.answer("which one runs your jobs? [shell]", "\x04")
        assert person.code() == 1
        assert os.listdir(folder) == []
