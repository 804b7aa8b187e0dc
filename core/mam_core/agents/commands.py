"""From a profile to what is executed: a list of words, never a line for a shell.

The prompt's bytes go in as they are (H5): by standard input, by the file itself,
or as one argument where a program can do no other. Values that come from a job
or from an agent's own output are checked before they stand among options.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mam_core.agents.profiles import OPTIONS, PROMPT, PROMPT_FILE, SESSION, Profile, PromptWay
from mam_core.agents.streams.values import session
from mam_core.errors import InvalidField

#: The kernel's limit on one argument, with the NUL that ends it (MAX_ARG_STRLEN).
MAX_ARGUMENT_BYTES = 128 * 1024 - 1

_MODEL = re.compile(r"[A-Za-z0-9][\w.:/@+\[\]-]{0,199}")


@dataclass(frozen=True)
class Command:
    """What is to be executed; without `stdin_path` it reads from /dev/null.

    Never from what we read from: an agent with an open standard input waits for its end.
    """

    argv: tuple[str, ...] = field(repr=False)  #: may hold a prompt
    stdin_path: str | None
    env: Mapping[str, str] = field(repr=False)  #: in addition to the job's facts


def command_for(
    profile: Profile,
    *,
    prompt_path: str,
    model: str | None = None,
    resume_session: str | None = None,
) -> Command:
    """The command of one attempt. `InvalidField` says what cannot be given to this agent."""
    prompt_path = os.path.abspath(prompt_path)  # it will run in another folder
    options = [*_model(profile, model), *_resume(profile, resume_session)]
    words = _placed(profile.command, options)
    stdin_path = None
    if profile.is_headless:
        if profile.prompt is PromptWay.STDIN:
            stdin_path = prompt_path
        elif profile.prompt is PromptWay.FILE:
            words = _filled(words, PROMPT_FILE, prompt_path)
        else:
            words = _filled(words, PROMPT, _argument(profile, prompt_path))
    return Command(tuple(words), stdin_path, dict(profile.env))


def _placed(command: tuple[str, ...], options: list[str]) -> list[str]:
    """The options where the command wants them, else at its end."""
    if OPTIONS not in command:
        return [*command, *options]
    at = command.index(OPTIONS)
    return [*command[:at], *options, *command[at + 1 :]]


def _filled(words: list[str], mark: str, value: str) -> list[str]:
    if not any(mark in word for word in words):
        return [*words, value]
    return [word.replace(mark, value) for word in words]


def _argument(profile: Profile, prompt_path: str) -> str:
    with open(prompt_path, "rb") as file:
        prompt = file.read(MAX_ARGUMENT_BYTES + 1)
    if len(prompt) > MAX_ARGUMENT_BYTES:
        raise InvalidField(
            f"the prompt is too long for {profile.name}, which takes it as an argument: "
            f"at most {MAX_ARGUMENT_BYTES:,} bytes (128 KiB)"
        )
    if b"\0" in prompt:
        raise InvalidField(
            f"the prompt has a NUL byte, and {profile.name} takes it as an argument, "
            "which cannot hold one"
        )
    return os.fsdecode(prompt)


def _model(profile: Profile, model: str | None) -> list[str]:
    if model is None:
        return []
    if profile.model_flag is None:
        raise InvalidField(f"{profile.name} cannot be told a model: its profile has no model_flag")
    if not _MODEL.fullmatch(model):
        raise InvalidField(f"{model[:60]!r} is no name of a model")
    if profile.model_flag.endswith("="):
        return [profile.model_flag + model]
    return [profile.model_flag, model]


def _resume(profile: Profile, resume_session: str | None) -> list[str]:
    if resume_session is None:
        return []
    if not profile.resume:
        raise InvalidField(f"{profile.name} cannot take up an earlier session: start it fresh")
    if session(resume_session) is None:
        raise InvalidField(f"{resume_session[:60]!r} is no session of {profile.name}")
    return [word.replace(SESSION, resume_session) for word in profile.resume]
