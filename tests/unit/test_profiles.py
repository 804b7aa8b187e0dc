"""Agent profiles and the commands made of them: what is started, and how it gets its prompt."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mam_core
from mam_core.agents.commands import MAX_ARGUMENT_BYTES, Command, command_for
from mam_core.agents.profiles import (
    BUILT_IN,
    Mode,
    Profile,
    PromptWay,
    UnknownAgent,
    find_program,
    profile_names,
    profile_of,
    served_by_default,
)
from mam_core.agents.streams import StreamFormat, parser_for
from mam_core.config import Config, load
from mam_core.config.schema import TABLES
from mam_core.errors import ConfigError, InvalidField
from tests.support.rows import each_row

#: Reads what it is given and says which bytes they are.
TELL = "import sys, hashlib; data = {}; print(hashlib.sha256(data).hexdigest())"
ODD_PROMPTS = [
    b"plain",
    b"-rf --help",
    b"trailing ;",
    b"$(touch pwned) `id` $HOME",
    b"two\nlines\n\n",
    b"quotes ' \" \\ and \\n",
    b"\x1b[201~ \x07 \r\x7f",
    b"{prompt} {prompt_file} {options} {session} %s {0}",
    "한국어 🚀 …".encode(),
    b"\xff\xfe not UTF-8",
]


def configured(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "mam.toml"
    path.write_text(text)
    return load(str(path))


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    path = tmp_path / "prompt"
    path.write_bytes(b"Do it.")
    path.chmod(0o600)
    return path


def built_in(name: str, prompt: Path, **options: str) -> Command:
    return command_for(BUILT_IN[name], prompt_path=str(prompt), **options)


class TestProfiles:
    def test_six_are_built_in(self) -> None:
        assert set(BUILT_IN) == {"claude-code", "codex", "gemini", "opencode", "aider", "shell"}
        for name, profile in BUILT_IN.items():
            assert profile_of(Config(), name) is profile
            assert parser_for(profile.stream).end(0, None) is not None
            assert profile.success

    @pytest.mark.parametrize("name", ["claude-code", "codex", "gemini", "opencode", "aider"])
    def test_an_agent_of_ours_has_a_command_for_a_terminal(self, name: str, tmp_path: Path) -> None:
        """H2"""
        config = configured(tmp_path, f'[agents.{name}]\nmode = "interactive"\n')
        profile = profile_of(config, name)
        assert profile.command == BUILT_IN[name].interactive
        assert profile.program == BUILT_IN[name].program
        assert not profile.is_headless
        assert profile.stream is BUILT_IN[name].stream
        skipping = ("dangerously", "bypass", "yolo", "yes-always", "--auto")
        assert not any(word in part for part in profile.command for word in skipping)

    def test_a_command_of_the_users_wins_over_ours_for_a_terminal(self, tmp_path: Path) -> None:
        text = '[agents.codex]\nmode = "interactive"\ncommand = ["mine"]\n'
        assert profile_of(configured(tmp_path, text), "codex").command == ("mine",)

    def test_an_agent_without_one_says_so_in_a_sentence(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError) as caught:
            profile_of(configured(tmp_path, '[agents.shell]\nmode = "interactive"\n'), "shell")
        assert caught.value.message == (
            '[agents.shell] has mode = "interactive" and no command, and shell has none of its own '
            "for a terminal: say command"
        )

    def test_an_unknown_one_is_one_sentence_that_names_the_others(self) -> None:
        """E15"""
        with pytest.raises(UnknownAgent) as caught:
            profile_of(Config(), "claud")
        assert caught.value.message == (
            "there is no agent 'claud': say one of aider, claude-code, codex, gemini, opencode, "
            "shell, or add [agents.NAME] with a command to mam.toml. Did you mean claude-code?"
        )

    def test_a_file_changes_what_it_says_and_nothing_else(self, tmp_path: Path) -> None:
        config = configured(
            tmp_path,
            """
            [agents.claude-code]
            command = ["claude", "-p", "--output-format", "stream-json", "--verbose"]
            env = { ANTHROPIC_BASE_URL = "http://127.0.0.1:1" }
            """,
        )
        profile = profile_of(config, "claude-code")
        known = BUILT_IN["claude-code"]
        assert profile.command[-1] == "--verbose"
        assert profile.env == {**known.env, "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
        assert (profile.stream, profile.mode, profile.resume, profile.model_flag) == (
            known.stream,
            known.mode,
            known.resume,
            known.model_flag,
        )

    def test_a_file_adds_one(self, tmp_path: Path) -> None:
        config = configured(
            tmp_path,
            """
            [agents.mine]
            command = ["my-agent", "--go"]
            prompt = "argument"
            model_flag = "--model="
            resume = ["--from", "{session}"]
            """,
        )
        assert "mine" in profile_names(config)
        assert profile_of(config, "mine") == Profile(
            "mine",
            ("my-agent", "--go"),
            prompt=PromptWay.ARGUMENT,
            mode=Mode.EXEC,
            stream=StreamFormat.PLAIN,
            env={},
            model_flag="--model=",
            resume=("--from", "{session}"),
        )

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            (
                "[agents.x]\nmodel_flag = '-m'",
                "[agents.x] has no command, and there is no built-in agent of that name",
            ),
            (
                "[agents.x]\ncommand = ['x']\nmode = 'stream'",
                '[agents.x] has mode = "stream" and does not say which stream',
            ),
            (
                "[agents.x]\ncommand = ['x', '{prompt_file}']",
                "[agents.x] names the prompt in its command, and gives it by stdin: say "
                'prompt = "file" or prompt = "argument"',
            ),
        ],
    )
    def test_a_profile_that_cannot_work_is_refused(
        self, tmp_path: Path, text: str, sentence: str
    ) -> None:
        with pytest.raises(ConfigError) as caught:
            profile_of(configured(tmp_path, text), "x")
        assert caught.value.message == sentence

    def test_a_stream_that_nobody_can_read_is_refused_where_it_is_written(
        self, tmp_path: Path
    ) -> None:
        with pytest.raises(ConfigError, match=r"agents\.x\.stream must be one of stream-json, "):
            configured(tmp_path, "[agents.x]\ncommand = ['x']\nstream = 'morse'")
        assert TABLES["agents"].settings["stream"].choices == tuple(StreamFormat)
        assert TABLES["agents"].settings["prompt"].choices == tuple(PromptWay)
        assert TABLES["agents"].settings["mode"].choices == tuple(Mode)

    def test_a_shell_is_served_only_where_it_is_named(self, tmp_path: Path) -> None:
        config = configured(tmp_path, "[agents.shell]\nenv = { A = 'b' }")
        assert "shell" in profile_names(config)
        assert "shell" not in served_by_default(config)
        assert "claude-code" in served_by_default(config)
        assert profile_of(config, "shell").by_name_only

    def test_its_variables_are_not_shown(self) -> None:
        """K5"""
        assert "sk-1" not in repr(Profile("x", ("x",), env={"KEY": "sk-1"}))
        assert "sk-1" not in repr(Command(("x", "sk-1"), None, {"KEY": "sk-1"}))

    def test_its_program_is_looked_for_where_the_agent_would(self, tmp_path: Path) -> None:
        program = tmp_path / "claude"
        program.write_text("#!/bin/sh\n")
        claude = BUILT_IN["claude-code"]
        assert find_program(claude, str(tmp_path)) is None  # not executable
        program.chmod(0o755)
        assert find_program(claude, f"/nowhere:{tmp_path}") == str(program)
        assert find_program(claude, "") is None
        assert find_program(BUILT_IN["shell"], "") == "/bin/sh"


class TestCommands:
    def test_claude_gets_its_prompt_by_stdin_and_speaks_in_pieces(self, prompt: Path) -> None:
        command = built_in("claude-code", prompt, model="opus", resume_session="14e99454-5e6a")
        assert command.argv == (
            *("claude", "-p", "--input-format", "stream-json"),
            *("--output-format", "stream-json", "--verbose", "--include-partial-messages"),
            *("--permission-prompt-tool", "stdio", "--permission-mode", "acceptEdits"),
            *("--model", "opus", "--resume", "14e99454-5e6a"),
        )
        assert command.stdin_path == str(prompt)
        assert command.env == {"DISABLE_AUTOUPDATER": "1"}

    def test_codex_resumes_by_a_subcommand_before_the_sign_for_stdin(self, prompt: Path) -> None:
        command = built_in("codex", prompt, model="gpt-5.5", resume_session="01a1e227-0f1a")
        assert command.argv == (
            *("codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write"),
            *("--model", "gpt-5.5", "resume", "01a1e227-0f1a", "-"),
        )
        assert built_in("codex", prompt).argv[-2:] == ("workspace-write", "-")

    def test_gemini_and_opencode_read_stdin(self, prompt: Path) -> None:
        gemini = built_in("gemini", prompt, model="gemini-2.5-pro")
        assert gemini.argv == (
            *("gemini", "--output-format", "stream-json", "--approval-mode", "auto_edit"),
            *("--model", "gemini-2.5-pro"),
        )
        opencode = built_in("opencode", prompt, resume_session="ses_e1dd07a08ffe")
        assert opencode.argv == (
            *("opencode", "run", "--format", "json", "--session", "ses_e1dd07a08ffe"),
        )
        assert gemini.stdin_path == opencode.stdin_path == str(prompt)

    def test_aider_reads_the_file_and_nothing_else(self, prompt: Path) -> None:
        command = built_in("aider", prompt, model="openai/standin-1")
        assert command.argv[-4:] == ("--model", "openai/standin-1", "--message-file", str(prompt))
        assert command.stdin_path is None
        with pytest.raises(InvalidField, match="aider cannot take up an earlier session"):
            built_in("aider", prompt, resume_session="abc")

    def test_the_prompt_is_in_no_argument_of_a_built_in_agent(self, prompt: Path) -> None:
        for name in BUILT_IN:
            assert "Do it." not in " ".join(built_in(name, prompt).argv)

    def test_a_relative_path_is_made_whole(
        self, prompt: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The agent runs in the job's folder, not in ours."""
        monkeypatch.chdir(prompt.parent)
        command = command_for(BUILT_IN["shell"], prompt_path="prompt")
        assert command.argv == ("/bin/sh", str(prompt))

    def test_an_interactive_agent_gets_no_prompt_on_its_command(self, prompt: Path) -> None:
        profile = Profile("x", ("x",), PromptWay.ARGUMENT, Mode.INTERACTIVE, model_flag="-m")
        command = command_for(profile, prompt_path=str(prompt), model="m1")
        assert (command.argv, command.stdin_path) == (("x", "-m", "m1"), None)

    def test_a_shell_cannot_be_told_a_model(self, prompt: Path) -> None:
        with pytest.raises(InvalidField, match="shell cannot be told a model"):
            built_in("shell", prompt, model="opus")

    @each_row("model", ["", "-x", "--yolo", "a b", "a\nb", "a\0b", "x" * 300])
    def test_a_model_that_looks_like_an_option_is_refused(self, prompt: Path, model: str) -> None:
        with pytest.raises(InvalidField, match="is no name of a model"):
            built_in("claude-code", prompt, model=model)

    @each_row("session", ["", "--yolo", "a b", "$(id)", "../x", "x" * 300])
    def test_a_session_that_looks_like_an_option_is_refused(
        self, prompt: Path, session: str
    ) -> None:
        with pytest.raises(InvalidField, match="is no session of claude-code"):
            built_in("claude-code", prompt, resume_session=session)

    @pytest.mark.parametrize("model", ["claude-opus-4-8[1m]", "openai/gpt-5.5:free", "a@b+c"])
    def test_real_names_of_models_pass(self, prompt: Path, model: str) -> None:
        assert model in built_in("claude-code", prompt, model=model).argv

    def test_an_argument_has_the_kernels_limit(self, prompt: Path) -> None:
        profile = Profile("x", (sys.executable, "-c", "pass"), PromptWay.ARGUMENT)
        prompt.write_bytes(b"a" * MAX_ARGUMENT_BYTES)
        command = command_for(profile, prompt_path=str(prompt))
        assert subprocess.run(command.argv, check=False).returncode == 0
        prompt.write_bytes(b"a" * (MAX_ARGUMENT_BYTES + 1))
        with pytest.raises(InvalidField, match=r"at most 131,071 bytes \(128 KiB\)"):
            command_for(profile, prompt_path=str(prompt))
        with pytest.raises(OSError):  # noqa: PT011 - the kernel's own words
            subprocess.run([*profile.command, "a" * (MAX_ARGUMENT_BYTES + 1)], check=False)

    def test_an_argument_holds_no_nul(self, prompt: Path) -> None:
        prompt.write_bytes(b"a\0b")
        profile = Profile("x", ("x",), PromptWay.ARGUMENT)
        with pytest.raises(InvalidField, match="has a NUL byte, and x takes it as an argument"):
            command_for(profile, prompt_path=str(prompt))


class TestThePromptArrives:
    """H5: byte for byte, whatever is in it and whichever way it goes."""

    @pytest.mark.parametrize(
        ("way", "source", "words"),
        [
            (PromptWay.STDIN, "sys.stdin.buffer.read()", ()),
            (PromptWay.FILE, "open(sys.argv[1], 'rb').read()", ()),
            (PromptWay.FILE, "open(sys.argv[1], 'rb').read()", ("{prompt_file}", "after")),
            (PromptWay.ARGUMENT, "__import__('os').fsencode(sys.argv[1])", ()),
            (PromptWay.ARGUMENT, "__import__('os').fsencode(sys.argv[1])", ("{prompt}", "after")),
            (PromptWay.ARGUMENT, "__import__('os').fsencode(sys.argv[1])[2:]", ("p={prompt}",)),
        ],
        ids=["stdin", "file", "file-placed", "argument", "argument-placed", "argument-joined"],
    )
    def test_as_it_is(
        self, prompt: Path, way: PromptWay, source: str, words: tuple[str, ...]
    ) -> None:
        profile = Profile("x", (sys.executable, "-c", TELL.format(source), *words), way)
        for bytes_of_it in ODD_PROMPTS:
            prompt.write_bytes(bytes_of_it)
            command = command_for(profile, prompt_path=str(prompt))
            with open(command.stdin_path or os.devnull, "rb") as stdin:
                answer = subprocess.run(
                    command.argv, stdin=stdin, capture_output=True, text=True, check=True
                )
            assert answer.stdout.strip() == hashlib.sha256(bytes_of_it).hexdigest(), bytes_of_it

    def test_a_shell_runs_it_as_a_script(self, prompt: Path) -> None:
        prompt.write_text('set -e\nread -r line || echo "nothing to read"\nexit 3\n')
        command = command_for(BUILT_IN["shell"], prompt_path=str(prompt))
        assert command.stdin_path is None
        answer = subprocess.run(
            command.argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert (answer.returncode, answer.stdout) == (3, "nothing to read\n")


def test_commands_that_run_once_per_event_know_nothing_of_agents() -> None:
    """The cold path: publish and pick import no profile and no parser."""
    root = str(Path(mam_core.__path__[0]).parent)
    program = f"""
import sys
sys.path.insert(0, {root!r})
import mam_core.cli.main, mam_core.cli.pick, mam_core.cli.publish, mam_core.config.schema
import mam_core.operations.pick, mam_core.operations.publish
print([name for name in sys.modules if name.startswith("mam_core.agents")])
"""
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
