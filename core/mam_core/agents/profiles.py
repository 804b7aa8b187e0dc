"""Agent profiles: which program a job's agent is, and how it is spoken to.

Six are built in; ``[agents.NAME]`` of mam.toml changes one or adds another. The
built-in commands make the program headless, let it edit its folder but ask
nobody, and switch its stream on, in pieces where it has them, so that a model
that speaks is not taken for one that is silent. The interactive ones switch off
what would stand in a prompt's way at the start, and no question about a permission.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from mam_core.agents.streams import StreamFormat
from mam_core.errors import ConfigError, MamError
from mam_core.near_names import did_you_mean

if TYPE_CHECKING:
    from mam_core.config import Config
    from mam_core.config.tables import AgentSettings

#: Words that a command may hold: where the prompt and the options go.
PROMPT, PROMPT_FILE, OPTIONS, SESSION = "{prompt}", "{prompt_file}", "{options}", "{session}"


class UnknownAgent(MamError):
    """There is no such agent profile."""

    title = "No such agent"


class PromptWay(StrEnum):
    """How the prompt reaches the program."""

    STDIN = "stdin"
    FILE = "file"  #: its path stands in the command
    ARGUMENT = "argument"  #: for programs that can do no other: no NUL, at most 128 KiB


class Mode(StrEnum):
    """How the program runs."""

    EXEC = "exec"  #: prompt in, text out, exit
    STREAM = "stream"  #: the same, and its output is a stream of events
    INTERACTIVE = "interactive"  #: in a terminal; its prompt is pasted


@dataclass(frozen=True)
class Profile:
    """One way to run one program."""

    name: str
    command: tuple[str, ...]  #: program and arguments; ``{options}`` says where ours go
    prompt: PromptWay = PromptWay.STDIN
    mode: Mode = Mode.EXEC
    stream: StreamFormat = StreamFormat.PLAIN
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    needs: tuple[str, ...] = ()  #: variables without which it is not started
    model_flag: str | None = None
    resume: tuple[str, ...] = ()  #: ``{session}`` is the id of an earlier session
    interactive: tuple[str, ...] = ()  #: the command where a mode, and no command, is given
    success: str = "exit code 0"  #: what counts as done, in words
    version: tuple[str, ...] = ("--version",)  #: how the program is asked for its version
    note: str = ""  #: what an operator should know
    by_name_only: bool = False  #: served only by a worker that names it

    @property
    def program(self) -> str:
        return self.command[0]

    @property
    def is_headless(self) -> bool:
        return self.mode is not Mode.INTERACTIVE


BUILT_IN: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            "claude-code",
            (
                *("claude", "-p", "--input-format", "stream-json"),
                *("--output-format", "stream-json", "--verbose", "--include-partial-messages"),
                *("--permission-prompt-tool", "stdio", "--permission-mode", "acceptEdits"),
            ),
            mode=Mode.STREAM,
            stream=StreamFormat.CLAUDE,
            # An agent that replaces its own program would do so under a dozen others.
            env={"DISABLE_AUTOUPDATER": "1"},
            model_flag="--model",
            resume=("--resume", SESSION),
            interactive=("claude",),
            success="a last result line without is_error and permission_denials, and exit code 0",
            note=(
                "edits files without asking; for anything else it asks, and waits for mam answer, "
                "unless rules in its settings allow it"
            ),
        ),
        Profile(
            "codex",
            (
                *("codex", "exec", "--json", "--skip-git-repo-check"),
                *("--sandbox", "workspace-write", OPTIONS, "-"),
            ),
            mode=Mode.STREAM,
            stream=StreamFormat.CODEX,
            model_flag="--model",
            resume=("resume", SESSION),
            # Its offer of a new version is a dialog that would eat a prompt.
            interactive=("codex", "-c", "check_for_update_on_startup=false"),
            success="turn.completed, no refused command on standard error, and exit code 0",
            note="works in its own sandbox; says nothing while the model speaks",
        ),
        Profile(
            "gemini",
            ("gemini", "--output-format", "stream-json", "--approval-mode", "auto_edit"),
            mode=Mode.STREAM,
            stream=StreamFormat.GEMINI,
            model_flag="--model",
            resume=("--resume", SESSION),
            interactive=("gemini",),
            success="a result line with status success, no tool withheld, and exit code 0",
            note=(
                "edits files but is offered no shell; --approval-mode yolo in [agents.gemini] "
                "command gives it one"
            ),
        ),
        Profile(
            "opencode",
            ("opencode", "run", "--format", "json"),
            mode=Mode.STREAM,
            stream=StreamFormat.OPENCODE,
            env={"OPENCODE_DISABLE_AUTOUPDATE": "true"},
            model_flag="--model",
            resume=("--session", SESSION),
            interactive=("opencode",),
            success="a last step_finish with reason stop, no rejected tool, and exit code 0",
            note=(
                "permissions are those of its own configuration; says nothing while the model "
                "speaks, nor when it asks again"
            ),
        ),
        Profile(
            "aider",
            (
                *("aider", "--yes-always", "--stream", "--no-pretty", "--no-check-update"),
                *("--no-show-release-notes", "--no-analytics", "--no-show-model-warnings"),
                *("--no-gitignore", "--no-detect-urls", "--no-suggest-shell-commands"),
                *(OPTIONS, "--message-file", PROMPT_FILE),
            ),
            prompt=PromptWay.FILE,
            stream=StreamFormat.AIDER,
            model_flag="--model",
            # Its first start asks about release notes, and eats the prompt.
            interactive=(
                *("aider", "--no-check-update", "--no-show-release-notes", "--no-analytics"),
                *("--no-show-model-warnings", "--no-gitignore", "--no-detect-urls"),
            ),
            success="a line of tokens and cost that no error follows, and exit code 0",
            note=(
                "ends with 0 whatever happened; commits by itself; a prompt that begins with / or "
                "! is a command to it"
            ),
        ),
        Profile(
            "shell",
            ("/bin/sh", PROMPT_FILE),
            prompt=PromptWay.FILE,
            version=(),
            note="runs the prompt as a script, so a worker serves it only where it is named",
            by_name_only=True,
        ),
    )
}


def profile_of(config: Config, name: str) -> Profile:
    """The profile of that name as the configuration has it; `UnknownAgent` says which there are."""
    profile = _profile_of(config, name)
    if common := config.needs:  # the project's rule for every agent
        return replace(profile, needs=tuple(dict.fromkeys((*profile.needs, *common))))
    return profile


def _profile_of(config: Config, name: str) -> Profile:
    settings = config.agents.get(name)
    known = BUILT_IN.get(name)
    if settings is None:
        if known is None:
            there = ", ".join(profile_names(config))
            raise UnknownAgent(
                f"there is no agent {name[:60]!r}: say one of {there}, "
                "or add [agents.NAME] with a command to mam.toml"
                f"{did_you_mean(name, profile_names(config))}"
            )
        return known
    return _changed(name, known, settings)


def profile_names(config: Config) -> tuple[str, ...]:
    """Every name that there is a profile for."""
    return tuple(sorted({*BUILT_IN, *config.agents}))


def served_by_default(config: Config) -> tuple[str, ...]:
    """The names that a worker serves which names none."""
    return tuple(
        name
        for name in profile_names(config)
        if name not in BUILT_IN or not BUILT_IN[name].by_name_only
    )


def find_program(profile: Profile, path: str, workdir: str = "") -> str | None:
    """Where the profile's program is, looked for in the folders of `path`; None: nowhere.

    One that names its folder is looked for from `workdir`, where it will be started.
    """
    import os
    from shutil import which

    program = profile.program
    return which(os.path.join(workdir, program) if os.sep in program else program, path=path)


def trouble_with(profile: Profile, environ: Mapping[str, str], workdir: str = "") -> str:
    """Why the agent cannot be started with these variables; empty: it can.

    Asked before anything costs something: a key that is missing is known now, and from the agent
    itself only by words that nobody reads. A value that is empty is none.
    """
    import os

    environ = {**environ, **profile.env}
    if not find_program(profile, environ.get("PATH", os.defpath), workdir):
        return f"the command {profile.program} of agent {profile.name} is not here"
    if names := lacking(profile, environ):
        which = "the variable" if len(names) == 1 else "the variables"
        return f"agent {profile.name} needs {which} {', '.join(names)}: not set here"
    return ""


def lacking(profile: Profile, environ: Mapping[str, str]) -> list[str]:
    """The variables that the agent needs and that have no value."""
    return [name for name in profile.needs if not environ.get(name)]


def _changed(name: str, known: Profile | None, settings: AgentSettings) -> Profile:
    if known is None:
        if settings.command is None:
            raise ConfigError(
                f"[agents.{name}] has no command, and there is no built-in agent of that name"
            )
        known = Profile(name, settings.command)
    profile = replace(
        known,
        command=settings.command or _own_command(name, known, settings),
        prompt=PromptWay(settings.prompt) if settings.prompt else known.prompt,
        stream=StreamFormat(settings.stream) if settings.stream else known.stream,
        mode=Mode(settings.mode) if settings.mode else known.mode,
        env={**known.env, **(settings.env or {})},
        needs=known.needs if settings.needs is None else settings.needs,
        model_flag=settings.model_flag or known.model_flag,
        resume=known.resume if settings.resume is None else settings.resume,
    )
    if profile.mode is Mode.STREAM and profile.stream is StreamFormat.PLAIN:
        raise ConfigError(f'[agents.{name}] has mode = "stream" and does not say which stream')
    if profile.prompt is PromptWay.STDIN and _mentions(profile, PROMPT, PROMPT_FILE):
        raise ConfigError(
            f"[agents.{name}] names the prompt in its command, and gives it by stdin: say "
            'prompt = "file" or prompt = "argument"'
        )
    return profile


def _own_command(name: str, known: Profile, settings: AgentSettings) -> tuple[str, ...]:
    """The built-in command of the mode that is asked for."""
    if settings.mode != Mode.INTERACTIVE:
        return known.command
    if not known.interactive:
        raise ConfigError(
            f'[agents.{name}] has mode = "interactive" and no command, and {name} has none of '
            "its own for a terminal: say command"
        )
    return known.interactive


def _mentions(profile: Profile, *marks: str) -> bool:
    return any(mark in word for word in profile.command for mark in marks)
