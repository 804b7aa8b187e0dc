"""Completion in the shells themselves: verbs, options and the names that are in use right now."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Mam, Process, environment, execute

BREAKS = " \t\n\"'><=;|&(:"


@pytest.fixture
def jobs(mam: Mam) -> dict[str, str]:
    """A pending and an ended job, by status."""
    pending = mam.register("count the stars", "--group", "night")
    over = mam.register("done with", "--agent", "codex", "--agent-session", "tmux:b")
    mam.ok("status", over, "--set", "error")
    mam.register("odd", "--agent-session", "two words; $(reboot)")
    return {"pending": pending, "error": over}


def offered(mam: Mam, *words: str) -> list[str]:
    answer = mam.ok("__complete", "zsh", *words)
    assert answer.err == ""
    return [line.split("\t")[0] for line in answer.lines]


class TestCandidates:
    def test_are_verbs_first(self, mam: Mam) -> None:
        fitting = ("register", "replay", "retry", "resume", "restore", "relay", "report")
        assert offered(mam, "re") == list(fitting)
        assert "list" in offered(mam, "")
        assert offered(mam, "--registry-dir", "x", "pi") == ["pick"]

    def test_are_the_options_of_the_verb(self, mam: Mam) -> None:
        assert offered(mam, "pick", "--a") == ["--allow-network-fs", "--agent-session", "--agents"]
        assert "--registry-dir" in offered(mam, "--")

    def test_are_jobs_that_fit_the_verb(self, mam: Mam, jobs: dict[str, str]) -> None:
        assert set(offered(mam, "get", "")) > set(jobs.values())
        assert jobs["error"] not in offered(mam, "cancel", "")
        assert offered(mam, "retry", "") == [jobs["error"]]
        assert offered(mam, "clean", "") == [jobs["error"]]
        assert offered(mam, "retry", "--job", "") == [jobs["error"]]
        assert offered(mam, "retry", jobs["error"], "") == []

    @pytest.mark.parametrize("words", [[], ["bash"], ["bash", "mam "], ["zsh"], ["nonsense"]])
    def test_are_none_for_too_few_words(self, mam: Mam, words: list[str]) -> None:
        answer = mam.ok("__complete", *words)
        assert (answer.out, answer.err) == ("", "")

    def test_tell_what_a_job_is(self, mam: Mam, jobs: dict[str, str]) -> None:
        answer = mam.ok("__complete", "fish", "retry", "")
        assert answer.out == f"{jobs['error']}\terror done with\n"

    @pytest.mark.usefixtures("jobs")
    def test_are_the_names_in_use(self, mam: Mam) -> None:
        assert offered(mam, "list", "--label", "") == ["tmux:a", "tmux:b"]
        assert offered(mam, "pick", "--agent-session=tmux:a") == ["--agent-session=tmux:a"]
        assert offered(mam, "pause", "--group", "n") == ["night"]
        assert offered(mam, "list", "--agent", "") == ["codex", "shell"]
        assert offered(mam, "register", "--agent", "c") == ["claude-code", "codex"]

    def test_are_what_an_act_is_about_once_the_act_is_said(self, mam: Mam) -> None:
        (mam.folder / "mam.toml").write_text(
            '[templates.t]\nprompt = "p"\n[schedules.nightly]\nevery = "1d"\ntemplate = "t"\n'
        )
        assert offered(mam, "schedule", "") == ["list", "run", "pause", "resume"]
        assert offered(mam, "schedule", "run", "") == ["nightly"]

    def test_are_statuses_also_after_a_comma(self, mam: Mam) -> None:
        assert offered(mam, "list", "--status", "c") == ["completed", "cancelled"]
        assert offered(mam, "list", "--status", "error,p") == ["error,pending"]
        assert "pending" not in offered(mam, "clean", "--status", "")

    def test_are_files_where_the_shell_knows_best(self, mam: Mam) -> None:
        assert offered(mam, "register", "--prompt-file", "x") == [":files"]
        assert offered(mam, "register", "--workdir", "") == [":folders"]
        assert offered(mam, "--registry-dir", "") == [":folders"]

    def test_come_from_the_registry_that_is_named(
        self, mam: Mam, jobs: dict[str, str], tmp_path: Path
    ) -> None:
        assert offered(mam, "--registry-dir", str(tmp_path), "get", "") == []
        named = f"--registry-dir={mam.registry}"
        assert jobs["error"] in offered(mam, named, "get", "")

    def test_are_none_where_something_is_wrong(self, mam: Mam) -> None:
        assert offered(mam, "nonsense", "") == []
        assert offered(mam, "register", "--prompt", "") == []
        (mam.folder / "mam.toml").write_text("nonsense")
        assert offered(mam, "get", "") == []
        assert list(mam.folder.iterdir()) == [mam.folder / "mam.toml"]


@pytest.fixture
def bin_path(tmp_path: Path) -> str:
    """A PATH on which ``mam`` is this Python's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "mam"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mam_core.cli.main "$@"\n')
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


class TestBash:
    @pytest.fixture
    def ask(self, mam: Mam, bin_path: str) -> Callable[[str], list[str]]:
        def ask(line: str) -> list[str]:
            program = (
                "source <(mam completion bash)\n"
                "COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=(mam) COMP_CWORD=0\n"
                'complete -p mam >/dev/null && _mam && printf "%s\\n" "${COMPREPLY[@]}"'
            )
            answer = execute(
                ["bash", "-c", program, "bash", line],
                cwd=mam.folder,
                env=environment(PATH=bin_path, COMP_WORDBREAKS=BREAKS),
            )
            assert answer.stderr == ""
            return answer.stdout.split()

        return ask

    def test_completes_verbs_jobs_and_options(
        self, ask: Callable[[str], list[str]], jobs: dict[str, str]
    ) -> None:
        assert ask("mam canc") == ["cancel"]
        assert ask("mam retry ") == [jobs["error"]]
        assert ask("mam pick --agents") == ["--agents"]

    @pytest.mark.usefixtures("jobs")
    def test_completes_the_part_of_a_label_behind_its_colon(
        self, ask: Callable[[str], list[str]]
    ) -> None:
        assert ask("mam list --label tmux:") == ["a", "b"]
        assert ask("mam list --label tm") == ["tmux:a", "tmux:b"]
        assert ask('mam list --label "tmux:') == ["a", "b"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
class TestFish:
    def test_completes_verbs_jobs_labels_and_files(
        self, mam: Mam, jobs: dict[str, str], bin_path: str, tmp_path: Path
    ) -> None:
        (mam.folder / "notes.txt").write_text("x")
        lines = ["mam canc", "mam retry ", "mam list --label tmux:", "mam register --bulk no"]
        asked = "; ".join(f"complete -C '{line}'; echo ==" for line in lines)
        answer = execute(
            ["fish", "--no-config", "-c", f"mam completion fish | source; {asked}"],
            cwd=mam.folder,
            env=environment(PATH=bin_path, XDG_DATA_HOME=str(tmp_path)),
        )
        assert answer.stderr == ""
        groups = [group.split("\n") for group in answer.stdout.split("==\n")]
        assert groups[0][0].startswith("cancel\tcancel jobs")
        assert groups[1][0] == f"{jobs['error']}\terror done with"
        assert groups[2][:2] == ["tmux:a", "tmux:b"]
        assert groups[3][0].startswith("notes.txt")


class Terminal:
    """A shell on a terminal of its own, typed at by a test."""

    def __init__(self, command: list[str], folder: Path, environ: dict[str, str]) -> None:
        self.leader, follower = pty.openpty()
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
        )
        os.close(follower)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.leader, text.encode())

    def wait_for(self, text: str) -> None:
        """Until `text` was printed after all that was waited for before."""
        deadline = time.monotonic() + 30
        while text not in self.seen:
            ready, _, _ = select.select([self.leader], [], [], 0.2)
            if ready:
                self.seen += os.read(self.leader, 65536).decode("utf-8", "replace")
            assert time.monotonic() < deadline, self.seen
        self.seen = self.seen.partition(text)[2]

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self.leader)


@pytest.fixture
def terminal(mam: Mam, bin_path: str, tmp_path: Path) -> Iterator[Callable[[list[str]], Terminal]]:
    opened: list[Terminal] = []

    def start(command: list[str]) -> Terminal:
        environ = environment(
            PATH=bin_path, HOME=str(tmp_path), TERM="dumb", PS1="$ ", ZDOTDIR=str(tmp_path)
        )
        opened.append(Terminal(command, mam.folder, environ))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_a_real_bash_completes_what_is_typed(
    terminal: Callable[[list[str]], Terminal], jobs: dict[str, str]
) -> None:
    bash = terminal(["bash", "--norc", "--noprofile", "-i"])
    bash.type("source <(mam completion bash); echo rea''dy\n")
    bash.wait_for("ready")
    bash.type("mam retr\t")
    bash.wait_for("retry ")
    bash.type("\t")
    bash.wait_for(jobs["error"])
    bash.type("\x15mam list --label tmux:b --agent cod\t")
    bash.wait_for("codex")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_a_real_zsh_completes_what_is_typed(
    terminal: Callable[[list[str]], Terminal], jobs: dict[str, str]
) -> None:
    zsh = terminal(["zsh", "-f", "-i"])
    zsh.type(
        "autoload -Uz compinit && compinit -u -D && source <(mam completion zsh); echo rea''dy\n"
    )
    zsh.wait_for("ready\r\n")
    zsh.type("mam retr\t")
    zsh.wait_for("retry ")
    zsh.type("\t")
    zsh.wait_for(jobs["error"])
    zsh.type("\x15mam list --label tmux:b\t --agent cod\t")
    zsh.wait_for("codex")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_are_sound(
    mam: Mam, process: Callable[..., Process], shell: str, tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(mam.ok("completion", shell).out)
    assert execute([shell, "-n", str(script)]).returncode == 0
