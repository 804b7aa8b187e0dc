"""How git is asked about a person's repository, and told to change one, with sentences for people.

All of it goes through `git_repository`, so nothing that the repository names runs.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from shutil import which
from typing import TypeVar

from mam_core.errors import MamError
from mam_core.git_repository import Deadline, GitSilent, Repository, run_outside
from mam_core.pace import paced

_Answer = TypeVar("_Answer")

#: A look at a large repository, and a check-out of one.
_LOOK_SEC = 60.0
_WRITE_SEC = 600.0

#: How long another process may be at making a worktree, and how soon we look again.
_HALF_MADE_SEC = 5.0
_AGAIN_SEC = 0.1
_HALF_MADE = re.compile(r"failed to read .*worktrees/[^/]+/")


class GitMissing(MamError):
    """git is not installed."""

    title = "No git"


class GitFailed(MamError):
    """git refused."""

    title = "git"


def ask(folder: str, *words: str) -> bytes:
    """A look. `rev-parse --quiet` of what is not there is an answer, and empty."""
    return _patiently(lambda: _ask(folder, words, _LOOK_SEC))


def line(folder: str, *words: str) -> str:
    """A look whose answer is one line."""
    return os.fsdecode(ask(folder, *words).rstrip(b"\n"))


def main_folder(folder: str) -> str:
    """The folder of the repository itself, from any of its work trees."""
    common = _repository(folder).common_dir
    return os.path.realpath(common.removesuffix(f"{os.sep}.git"))


def do(folder: str, *words: str) -> None:
    """A change."""
    _patiently(lambda: _ask(folder, words, _WRITE_SEC))


def new_repository(folder: str) -> None:
    _check_installed()
    try:
        run_outside(folder, "init", "--quiet", "--template=", deadline=Deadline(_LOOK_SEC))
    except GitSilent as problem:
        raise GitFailed(str(problem)) from None


def add_worktree(repository: str, path: str, *words: str) -> None:
    """A work tree at `path`, of the branch and commit that `words` name."""
    _patiently(lambda: _add_worktree(repository, path, words))


def _add_worktree(repository: str, path: str, words: tuple[str, ...]) -> None:
    try:
        _repository(repository).add_worktree(path, words, Deadline(_WRITE_SEC))
    except GitSilent as problem:
        raise GitFailed(str(problem)) from None


def _ask(folder: str, words: tuple[str, ...], seconds: float) -> bytes:
    try:
        return _repository(folder).ask(*words, deadline=Deadline(seconds))
    except GitSilent as problem:
        if "--quiet" in words and words[0] == "rev-parse":
            return b""
        raise GitFailed(str(problem)) from None


def _repository(folder: str) -> Repository:
    _check_installed()
    repository = Repository.of(folder)
    if repository is None:
        raise GitFailed(f"{folder} is in no git repository")
    return repository


def _check_installed() -> None:
    if which("git") is None:
        raise GitMissing


def _patiently(act: Callable[[], _Answer]) -> _Answer:
    """Try again while another process is making a worktree: until it is done, every git command
    that looks at worktrees fails, before it has changed anything. A process that was killed while
    making one leaves that state behind for good, so there is a limit."""
    deadline = time.monotonic() + _HALF_MADE_SEC
    while True:
        try:
            return act()
        except GitFailed as problem:
            if not _HALF_MADE.search(problem.message) or time.monotonic() > deadline:
                raise
        time.sleep(paced(_AGAIN_SEC))
