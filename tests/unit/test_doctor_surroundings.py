"""What the doctor says of a newcomer's machine: agents, terminal, clock, broker, packages."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from mam_core.config import load
from mam_core.doctor import agents, broker, clock, machine, programs, terminal
from mam_core.doctor.findings import Finding, Severity
from mam_core.doctor.ground import Ground, Look
from mam_core.wiring import open_registry

Make = Callable[[str], Ground]


@pytest.fixture
def ground_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A registry with these settings, in a folder where nothing is installed."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "programs").mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", str(project / "programs"))
    opened = ExitStack()

    def make(settings: str = "") -> Ground:
        (project / "mam.toml").write_text(settings)
        config = load()
        path = str(project / ".mam" / "jobs")
        return Ground(opened.enter_context(open_registry(path, config=config)), path, config)

    with opened:
        yield make


@pytest.fixture
def look(ground_with: Make) -> Look:
    return Look(ground_with(""))


def program(name: str, script: str) -> Path:
    path = Path("programs", name).absolute()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def told(findings: Iterable[Finding]) -> dict[str, Finding]:
    return {one.what: one for one in findings}


def not_well(findings: Iterable[Finding]) -> list[Finding]:
    found = [one for one in findings if one.severity is not Severity.OK]
    assert all(one.advice or one.fix for one in found), "each has its fix"
    return found


class TestAgents:
    def test_are_told_with_their_version_and_a_sign_of_a_login(
        self, look: Look, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program("claude", "echo '2.1.197 (Claude Code)'")
        program("codex", "echo codex-cli 9.9.9")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        found = told(agents.found(look))
        claude, codex = found["claude-code"], found["codex"]
        assert (claude.severity, claude.words) == (
            Severity.OK,
            "2.1.197 (stream); a login by ANTHROPIC_API_KEY",
        )
        assert codex.severity is Severity.NOTE
        assert codex.words.startswith("9.9.9 (stream); recorded with 0.166.0; there is no sign")
        assert codex.advice == "run `codex login`, or set OPENAI_API_KEY"
        assert codex.to_dict()["advice"] == codex.advice, "programs are told, too"
        assert "secret" not in str(found)

    def test_a_stored_login_is_a_file_that_nobody_opens(
        self, look: Look, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program("codex", "echo codex-cli 0.166.0")
        stored = Path(os.environ["HOME"], ".codex", "auth.json")
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.touch()
        stored.chmod(0)
        for name in ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"):
            monkeypatch.delenv(name, raising=False)
        assert told(agents.found(look))["codex"].words.endswith("a login by ~/.codex/auth.json")

    def test_a_program_that_hangs_or_shouts_is_asked_for_a_while_only(
        self, look: Look, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(programs, "PATIENCE_SEC", 0.5)
        program("claude", "exec /bin/sleep 600")
        program("codex", "printf '\\033[2J0.1.0\\033]0;x\\007'")
        program("gemini", "exit 3")
        program("opencode", "while :; do echo 1.2.3; done")
        found = told(agents.found(look))
        assert "it did not tell its version" in found["claude-code"].words
        assert "\x1b" not in found["codex"].words
        assert "it did not tell its version" in found["gemini"].words
        assert "it did not tell its version" in found["opencode"].words

    def test_a_wrapper_of_ones_own_is_not_started(self, ground_with: Make) -> None:
        ground = ground_with('[agents.mine]\ncommand = ["mine"]\nneeds = ["MINE_KEY"]\n')
        program("mine", "echo started > started")
        found = told(agents.found(Look(ground)))["mine"]
        assert not Path("started").exists()
        assert (found.severity, found.advice) == (Severity.WARNING, "export MINE_KEY=…")

    def test_a_profile_that_makes_no_sense_names_its_table(self, ground_with: Make) -> None:
        ground = ground_with('[agents.odd]\nmode = "stream"\n')
        assert "[agents.odd]" in told(agents.found(Look(ground)))["odd"].advice


class TestTheTerminal:
    @pytest.fixture(autouse=True)
    def at_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stream = SimpleNamespace(isatty=lambda: True)
        monkeypatch.setattr(terminal, "sys", SimpleNamespace(stdin=stream, stderr=stream))
        for name in ("NO_COLOR", "COLORTERM", "TMUX"):
            monkeypatch.delenv(name, raising=False)

    def test_without_one_nothing_is_claimed(
        self, look: Look, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(terminal, "sys", SimpleNamespace(stdin=None, stderr=None))
        (said,) = terminal.kind(look)
        assert (said.severity, said.what) == (Severity.NOTE, "kind")

    @pytest.mark.parametrize(
        ("variables", "severity", "words"),
        [
            ({"TERM": "dumb"}, Severity.WARNING, "cannot be drawn"),
            ({"TERM": ""}, Severity.WARNING, "not set"),
            ({"TERM": "no-such-terminal"}, Severity.WARNING, "no description"),
            ({"TERM": "vt100"}, Severity.NOTE, "0 colours"),
            ({"TERM": "xterm-256color"}, Severity.OK, "256 colours"),
            ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, Severity.OK, "all colours"),
            ({"TERM": "xterm-256color", "NO_COLOR": "1"}, Severity.OK, "NO_COLOR"),
        ],
        ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else None,
    )
    def test_colours(
        self,
        look: Look,
        monkeypatch: pytest.MonkeyPatch,
        variables: dict[str, str],
        severity: Severity,
        words: str,
    ) -> None:
        known = {"vt100": 0, "xterm-256color": 256}
        monkeypatch.setattr(terminal, "known_colours", known.get)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        found = told(terminal.kind(look))["TERM"]
        assert (found.severity, words in found.words) == (severity, True), found
        assert found.advice or severity is Severity.OK

    @pytest.mark.parametrize(
        ("term", "count"), [("xterm-256color", "256"), ("no-such-terminal", "None")]
    )
    def test_the_system_knows_terminals(self, term: str, count: str) -> None:
        ask = "import sys, mam_core.doctor.terminal as t; print(t.known_colours(sys.argv[1]))"
        command = [sys.executable, "-c", ask, term]
        assert subprocess.run(command, capture_output=True, text=True).stdout.strip() == count

    @pytest.mark.parametrize(
        ("locale", "severity"),
        [("", Severity.OK), ("de_DE.UTF-8", Severity.OK), ("C", Severity.NOTE)],
    )
    def test_characters(
        self, look: Look, monkeypatch: pytest.MonkeyPatch, locale: str, severity: Severity
    ) -> None:
        for name in ("LC_ALL", "LC_CTYPE", "LANG"):
            monkeypatch.setenv(name, locale)
        (said,) = terminal.characters(look)
        assert said.severity is severity

    def test_the_tmux_around_it_is_asked_for_focus_and_esc(
        self, look: Look, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TMUX", "/nowhere,1,0")
        monkeypatch.setenv("TERM", "tmux-256color")
        program("tmux", 'case "$3" in focus-events) echo off ;; *) echo 500 ;; esac')
        focus, escape = not_well(terminal.around(look))
        assert (focus.severity, focus.advice[:24]) == (Severity.WARNING, "set -s focus-events on, ")
        assert "500 ms" in escape.words
        program("tmux", 'case "$3" in focus-events) echo on ;; *) echo 10 ;; esac')
        assert not_well(terminal.around(look)) == []


class TestTheClock:
    def test_an_impossible_date_is_a_problem(
        self, look: Look, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(clock, "time", SimpleNamespace(time=lambda: 0.0))
        (said,) = not_well(clock.wall(look))
        assert said.severity is Severity.PROBLEM
        assert "1970-01-01" in said.words

    def test_one_that_nobody_keeps_is_a_note(
        self, look: Look, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(clock, "_is_unsynchronised", lambda: True)
        assert [one.severity for one in clock.wall(look)] == [Severity.NOTE]
        monkeypatch.setattr(clock, "_is_unsynchronised", lambda: False)
        assert [one.severity for one in clock.wall(look)] == [Severity.OK]

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked")
    def test_the_kernel_is_only_asked(self) -> None:
        before = time.time() - time.monotonic()
        assert clock._is_unsynchronised() in (True, False)
        assert abs(time.time() - time.monotonic() - before) < 1

    def test_a_job_from_the_future_is_told(
        self, look: Look, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        request = {"prompt": "p", "agent": "shell", "agent_session": "l"}
        (made,) = look.registry.register([request])
        assert list(clock.ahead(look)) == []
        now = time.time()
        monkeypatch.setattr(clock, "time", SimpleNamespace(time=lambda: now - 3600))
        (said,) = not_well(clock.ahead(look))
        assert made.job_id in said.words


class TestTheRest:
    def test_a_package_that_is_missing_says_what_is_lost(
        self, look: Look, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        known = metadata.version

        def version(name: str) -> str:
            if name == "textual":
                raise metadata.PackageNotFoundError(name)
            return known(name)

        monkeypatch.setattr(metadata, "version", version)
        (said,) = not_well(machine.packages(look))
        assert (said.what, "no console" in said.words) == ("textual", True)

    def test_an_old_tmux_says_what_it_cannot_do(self) -> None:
        (said,) = not_well(machine._tmux_that_answers("3.2a"))
        assert "by which signal" in said.words
        assert not_well(machine._tmux_that_answers("3.3a")) == []
        assert not_well(machine._tmux_that_answers("master")) == []

    def test_a_named_broker_that_does_not_answer(self, ground_with: Make) -> None:
        with socket.socket() as nobody:  # bound, and not listening: nobody else gets the port
            nobody.bind(("127.0.0.1", 0))
            port = nobody.getsockname()[1]
            ground = ground_with(f'[broker]\nhost = "127.0.0.1"\nport = {port}\n')
            (said,) = not_well(broker.answers(Look(ground)))
        assert f"127.0.0.1:{port} does not answer" in said.words

    def test_one_that_listens_and_talks_tls(self, ground_with: Make) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            ground = ground_with(f'[broker]\nhost = "127.0.0.1"\nport = {port}\ntls = true\n')
            assert not_well(broker.answers(Look(ground))) == []
