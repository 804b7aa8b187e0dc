"""The skill file that teaches an agent to delegate: shown, or put where agents look for it."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

from mam_core.config import Config
from mam_core.errors import MamError

NAME = "mam"
FILE = "SKILL.md"
_PLACE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "skill", FILE)


class LocalRules(NamedTuple):
    """A project's own safety skill: the second of two layers, where the shipped text is the first.

    Agents read it; what it says in words is in force for nobody else.
    """

    path: str
    settings: str | None  #: the file of rules beside it that is in force here


def local_rules(config: Config) -> list[LocalRules]:
    beside = {os.path.dirname(path): path for path in config.files}
    return [LocalRules(path, beside.get(os.path.dirname(path))) for path in config.skills]


def in_words(rules: LocalRules) -> str:
    told = "its mam.toml is in force" if rules.settings else "no mam.toml beside it is in force"
    return f"this project has a safety skill, {rules.path}: agents read it; {told}"


class CannotInstall(MamError):
    """The skill could not be put there."""

    title = "Skill"


def skill() -> str:
    with open(_PLACE, encoding="utf-8") as file:
        return file.read()


def install(folder: str) -> str:
    """Into a folder of skills, as ``mam/SKILL.md``; what was done, in words.

    A file of an earlier version is replaced. One that somebody wrote, or a link, is left alone.
    """
    place = os.path.join(os.path.abspath(os.path.expanduser(folder)), NAME)
    path = os.path.join(place, FILE)
    text = skill()
    try:
        os.makedirs(place, exist_ok=True)
        if (before := _there(path)) == text:
            return f"{path} is there already, and is the same"
        if before is not None and not _is_ours(before):
            raise CannotInstall(f"{path} is there, and is none of ours: move it away first")
        _replace(path, text)
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise CannotInstall(f"{path} cannot be written: {why}") from None
    return f"{path} is {'written' if before is None else 'brought up to date'}"


def _there(path: str) -> str | None:
    """What stands there now; None: nothing. A link is never followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, encoding="utf-8", errors="replace") as file:
        return file.read(1024 * 1024)


def _is_ours(text: str) -> bool:
    return text.startswith(f"---\nname: {NAME}\n") and "\n# Delegate with mam\n" in text


def _replace(path: str, text: str) -> None:
    fresh = f"{path}.{os.getpid()}.tmp"
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(fresh, path)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(fresh)
        raise
