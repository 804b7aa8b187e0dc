"""The command itself: its help, its options everywhere, its exit codes, its errors."""

from __future__ import annotations

import argparse
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mam_core
from mam_core.cli import main as command
from mam_core.cli.main import VERBS, load, main, parser_of
from mam_core.errors import MamError
from mam_core.fields import SETTABLE
from mam_core.version import __version__
from tests.cli.conftest import Mam, Process, environment, execute, is_one_sentence
from tests.support.rows import each_row

ISSUE_VERBS = (  # noqa: SIM905 — as the issue lists them
    "register list get status pick logs verify cancel retry edit clean pause resume heartbeat "
    "publish watch wait submit work relay migrate broker config why completion "
    "diff say answer interrupt broadcast spawn sessions attach stop restore doctor "
    "console demo export attention replay nodes node output dispatch group capacity "
    "schedule audit deploy init report mcp skill"
).split()


class TestHelp:
    def test_names_every_verb(self, mam: Mam) -> None:
        assert sorted(VERBS) == sorted(ISSUE_VERBS)
        for flag in ("--help", "-h"):
            answer = mam.ok(flag)
            assert answer.err == ""
            for verb in ISSUE_VERBS:
                assert re.search(rf"^  {verb} +\S", answer.out, re.MULTILINE)
            assert max(map(len, answer.lines)) <= 100
            assert "else .mam/jobs here or above)" in answer.out

    @each_row("verb", ISSUE_VERBS)
    def test_of_a_verb_names_its_options_and_those_of_all(self, mam: Mam, verb: str) -> None:
        """E3"""
        answer = mam.ok(verb, "--help")
        assert answer.err == ""
        assert answer.out.startswith(f"usage: mam {verb} ")
        assert "--registry-dir DIR" in answer.out

    def test_of_register_names_every_field(self, mam: Mam) -> None:
        """E3"""
        text = mam.ok("register", "--help").out
        flags = (  # noqa: SIM905 — as the issue lists them
            "--prompt --prompt-file --agent --agent-session --model --timeout --idle-timeout "
            "--workdir --artifact --validate --after --group --priority --key --max-attempts "
            "--memory-max --max-cost --max-tokens --not-before --token --topic-prefix "
            "--broker-host --broker-port --broker-tls --broker-username "
            "--broker-password-file --bulk"
        ).split()
        for flag in flags:
            assert f"{flag} " in text or f"{flag}\n" in text or f"{flag}]" in text, flag

    def test_without_a_verb_the_console_says_that_it_needs_a_terminal(self, mam: Mam) -> None:
        for words in (
            [],
            ["--registry-dir", "x"],
            ["--filter", "x"],
            ["--read-only"],
            ["--no-mouse"],
            ["console"],
        ):
            answer = mam(*words)
            assert (answer.code, answer.out) == (2, "")
            assert answer.err.startswith("mam: the console needs a terminal, and standard ")

    def test_is_also_a_verb(self, mam: Mam) -> None:
        assert mam.ok("help") == mam.ok("--help")
        assert mam.ok("help", "list") == mam.ok("list", "--help")
        assert mam("help", "nonsense").code == 2

    def test_of_register_shows_a_line_of_a_bulk_file(self, mam: Mam) -> None:
        text = mam.ok("register", "--help").out
        (line,) = (line for line in text.splitlines() if line.startswith('  {"prompt"'))
        (mam.folder / "jobs").write_text(line)
        mam.ok("register", "--bulk", "jobs")
        assert all(re.search(rf"^  .*\b{key}\b", text, re.MULTILINE) for key in SETTABLE)

    @each_row("verb", ISSUE_VERBS)
    def test_every_option_tells_what_it_is_for(self, verb: str) -> None:
        module = load(verb)
        assert module is not None
        for action in parser_of(verb, module)._actions:
            assert action.help, action.option_strings


def test_version_tells_which_code_is_running(mam: Mam) -> None:
    """N18, N36"""
    answer = mam.ok("--version")
    assert answer.out == f"mam {__version__} ({Path(mam_core.__file__).parent})\n"
    assert answer.err == ""


class TestTheRegistryOption:
    """A2, E18"""

    @pytest.mark.parametrize(
        "form",
        [
            lambda verb, place: ["--registry-dir", place, *verb],
            lambda verb, place: [*verb, "--registry-dir", place],
            lambda verb, place: [f"--registry-dir={place}", *verb],
            lambda verb, place: [verb[0], f"--registry-dir={place}", *verb[1:]],
        ],
    )
    def test_stands_before_or_after_every_verb(
        self, mam: Mam, form: Callable[[list[str], str], list[str]]
    ) -> None:
        place = str(mam.folder / "elsewhere")
        base = ["register", "--prompt", "p", "--agent", "a", "--agent-session", "l"]
        job_id = mam.ok(*form(base, place)).out.strip()
        assert (Path(place) / f"{job_id}.json").exists()
        for verb in (
            ["list"],
            ["list", "--json"],
            ["get", job_id],
            ["status", job_id],
            ["why", job_id],
            ["edit", job_id, "--priority", "3"],
            ["pause", "--all"],
            ["resume", "--all"],
            ["pick", "--label", "l"],
            ["heartbeat", job_id],
            ["cancel", job_id],
            ["status", job_id, "--set", "error"],
            ["retry", job_id],
            ["verify", job_id],
            ["cancel", job_id],
            ["logs", job_id],
            ["logs", "--list"],
            ["clean"],
            ["clean", "--undo"],
        ):
            mam.ok(*form(verb, place))
        assert not (mam.folder / ".mam").exists()

    def test_can_come_from_the_environment_and_the_settings(
        self, mam: Mam, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (mam.folder / "mam.toml").write_text('[store]\nregistry_dir = "by-settings"\n')
        mam.register()
        assert (mam.folder / "by-settings").is_dir()
        monkeypatch.setenv("MAM_REGISTRY_DIR", str(mam.folder / "by-environment"))
        mam.register()
        assert (mam.folder / "by-environment").is_dir()
        mam.ok("list", "--registry-dir", "by-flag")
        assert not (mam.folder / ".mam").exists()

    def test_a_legacy_registry_is_used_with_one_notice(self, mam: Mam) -> None:
        """A1, X1"""
        job_id = mam.register()
        (mam.folder / ".mam").rename(mam.folder / ".hermes")
        answer = mam.ok("list")
        assert job_id in answer.out
        assert is_one_sentence(answer.err)
        assert "mam migrate" in answer.err


@each_row(
    ("words", "code"),
    [
        (["list"], 0),
        (["list", "--json"], 0),
        (["logs", "--list"], 0),
        (["get", "JOB"], 0),
        (["get", "--job", "nobody99"], 1),
        (["get", "--job", "../x"], 1),
        (["status", "--job", "nobody99", "--set", "error"], 1),
        (["status", "--job", "nobody99", "--set", "finished"], 1),
        (["status", "--job", "JOB", "--set", "nonsense"], 1),
        (["logs", "nobody99"], 1),
        (["cancel", "nobody99"], 1),
        (["retry", "JOB"], 1),
        (["list", "--status", "nonsense"], 1),
        (["register"], 2),
        (["register", "--timeout", "0"], 2),
        (["get"], 2),
        (["pick"], 2),
        (["nonsense"], 2),
        (["list", "--nonsense"], 2),
        (["--nonsense", "list"], 2),
        (["--registry-dir"], 2),
        (["--registry-dir", "", "list"], 2),
        (["list", "--registry-dir="], 2),
        (["list", "--config", ""], 2),
        (["list", "--registry-dir"], 2),
        (["list", "extra"], 2),
        (["list", "--stat", "error"], 2),
        (["completion", "tcsh"], 2),
        ([], 2),
        (["pick", "--agent-session", "tmux:nobody"], 3),
    ],
)
def test_exit_codes(mam: Mam, words: list[str], code: int) -> None:
    """E14, E15"""
    job_id = mam.register()
    answer = mam(*(job_id if word == "JOB" else word for word in words))
    assert answer.code == code
    if code:
        assert answer.out == ""
    if code in (1, 2) and words and words != ["--registry-dir"]:
        assert is_one_sentence(answer.err)


class TestErrors:
    @pytest.fixture
    def failing(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
        def fail_with(problem: BaseException) -> None:
            class Verb:
                def options(self, parser: argparse.ArgumentParser) -> None: ...

                def run(self, args: argparse.Namespace, context: Any) -> int:
                    raise problem

            monkeypatch.setattr(command, "load", lambda verb: Verb())

        return fail_with

    def test_of_a_person_are_one_harmless_sentence(
        self, mam: Mam, failing: Callable[[BaseException], None]
    ) -> None:
        failing(MamError("it \x1b[2J\nfailed"))
        answer = mam("list")
        assert (answer.code, answer.err) == (1, "mam: it \\x1b[2J\\nfailed\n")

    def test_of_ours_are_one_sentence_with_a_hint(
        self, mam: Mam, failing: Callable[[BaseException], None]
    ) -> None:
        failing(ZeroDivisionError("oh"))
        answer = mam("list")
        assert answer.code == 1
        assert is_one_sentence(answer.err)
        assert "MAM_DEBUG=1" in answer.err

    def test_of_ours_show_where_when_asked(
        self,
        failing: Callable[[BaseException], None],
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setenv("MAM_DEBUG", "1")
        failing(ZeroDivisionError("oh"))
        assert main(["list"]) == 1
        assert "Traceback" in capsys.readouterr().err

    def test_of_the_system_name_the_file(
        self, mam: Mam, failing: Callable[[BaseException], None]
    ) -> None:
        failing(PermissionError(13, "Permission denied", "some/file"))
        assert mam("list").err == "mam: some/file: permission denied\n"

    def test_an_interrupt_is_quiet(
        self, mam: Mam, failing: Callable[[BaseException], None]
    ) -> None:
        failing(KeyboardInterrupt())
        answer = mam("list")
        assert (answer.code, answer.out, answer.err) == (130, "", "")

    def test_a_mistake_in_the_settings_names_the_line(self, mam: Mam) -> None:
        (mam.folder / "mam.toml").write_text("[defaults]\ntimeout_sec = 0\n")
        answer = mam("list")
        assert answer.code == 1
        assert is_one_sentence(answer.err)
        assert "line 2" in answer.err
        mam.ok("--help")
        mam.ok("--version")


class TestWarnings:
    def test_of_the_core_are_lines_of_ours(self, mam: Mam) -> None:
        """F14"""
        mam.ok("list")
        answers = []
        for message in ("a plain one", "an \x1b[2J evil\none"):
            mam._capture.readouterr()
            logging.getLogger("mam").warning(message)
            answers.append(mam._capture.readouterr()[1])
        assert answers == [
            "mam: warning: a plain one\n",
            "mam: warning: an \\x1b[2J evil\\none\n",
        ]

    def test_of_one_kind_are_a_few_and_a_count(self, mam: Mam) -> None:
        good = mam.register()
        for number in range(8):
            mam.path(f"broken{number}").write_bytes(b"")
        warnings = mam.ok("pick", "--label", "tmux:a").err.splitlines()
        assert [line.partition(".json")[0] for line in warnings[:5]] == [
            f"mam: warning: broken{number}" for number in range(5)
        ]
        assert warnings[5:] == [
            "mam: warning: … and 3 more like this: broken0.json is passed over: it is empty"
        ]
        assert good not in "".join(warnings)
        mam.ok("list")
        assert len(mam.ok("list").err.splitlines()) == 6  # each command counts anew

    def test_come_out_in_a_process_that_had_no_logging_until_then(
        self, mam: Mam, process: Callable[..., Process]
    ) -> None:
        """F13, F14: the audit log cannot be written, and the job is registered all the same."""
        (mam.folder / ".mam").mkdir(mode=0o700)
        (mam.folder / ".mam" / "delegate_job_logs").write_text("in the way")
        answer = process("register", "--prompt", "p", "--agent", "a", "--label", "l")
        assert answer.returncode == 0
        assert mam.record(answer.stdout.strip())["prompt"] == "p"
        assert answer.stderr.startswith("mam: warning: the audit log")
        assert all(line.startswith("mam: warning: ") for line in answer.stderr.splitlines())


class TestAsAProcess:
    def test_works_from_any_folder_as_command_and_as_module(self, mam: Mam, tmp_path: Path) -> None:
        """E17"""
        elsewhere = tmp_path / "else where"
        elsewhere.mkdir()
        script = shutil.which("mam", path=str(Path(sys.executable).parent))
        if script is None:
            pytest.skip("mam is not installed beside this Python")
        job_id = mam.register()
        module = [sys.executable, "-m"]
        for start in ([script], [*module, "mam_core"], [*module, "mam_core.cli.main"]):
            answer = execute(
                [*start, "get", job_id, "--registry-dir", str(mam.registry)], cwd=elsewhere
            )
            assert answer.returncode == 0, answer.stderr
            assert job_id in answer.stdout
        assert list(elsewhere.iterdir()) == []

    def test_the_id_can_be_used_as_it_is(self, shell: Callable[..., Process]) -> None:
        """E1"""
        answer = shell(
            'id=$(mam register --prompt p --agent a --agent-session l) && mam status "$id"'
        )
        assert (answer.returncode, answer.stdout) == (0, "pending\n")

    def test_needs_no_environment(self, mam: Mam, process: Callable[..., Process]) -> None:
        """A15"""
        job_id = mam.register("별")
        answer = process("list", env={})
        assert answer.returncode == 0, answer.stderr
        assert job_id in answer.stdout

    def test_shows_numbers_where_the_output_has_no_such_characters(
        self, mam: Mam, process: Callable[..., Process]
    ) -> None:
        mam.register("별")
        answer = process("list", env=environment(PYTHONIOENCODING="ascii"))
        assert answer.returncode == 0, answer.stderr
        assert "\\ubcc4" in answer.stdout

    def test_words_that_are_no_utf_8_are_refused(self, mam: Mam) -> None:
        """A14, decision 16: what no agent can be given as bytes is no prompt."""
        answer = mam("register", "--prompt", "caf\udce9", "--agent", "a", "--agent-session", "s")
        assert (answer.code, answer.out) == (2, "")
        assert is_one_sentence(answer.err)

    def test_in_a_folder_that_is_gone_is_one_sentence(self, shell: Callable[..., Process]) -> None:
        answer = shell("mkdir gone && cd gone && rmdir ../gone && mam list")
        assert answer.returncode == 1
        assert is_one_sentence(answer.stderr)

    def test_does_not_change_the_folder_that_it_is_asked_in(
        self, mam: Mam, process: Callable[..., Process]
    ) -> None:
        for words in (["--help"], ["--version"], ["list"], ["logs", "--list"], ["get", "x"]):
            process(*words)
        assert os.listdir(mam.folder) == []
