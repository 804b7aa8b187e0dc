"""How git is asked about a person's repository, and told to change one, with sentences for people.

A look is as careful as one at an agent's folder (`git_repository`). Making a
worktree writes, so filters run there as they would for the person; hooks do not.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from shutil import which
from typing import TypeVar

from mam_core.errors import MamError
from mam_core.git_repository import Deadline, GitSilent, Repository
from mam_core.pace import paced

_Answer = TypeVar("_Answer")

#: A look at a large repository, and a check-out of one.
_LOOK_SEC = 60.0
_WRITE_SEC = 600.0

#: How long another process may be at making a worktree, and how soon we look again.
_HALF_MADE_SEC = 5.0
_AGAIN_SEC = 0.1
_HALF_MADE = re.compile(r"failed to read .*worktrees/[^/]+/")

_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


class GitMissing(MamError):
    """git is not installed."""

    title = "No git"


class GitFailed(MamError):
    """git refused."""

    title = "git"


def ask(folder: str, *words: str) -> bytes:
    """A look. `rev-parse --quiet` of what is not there is an answer, and empty."""
    return _patiently(lambda: _ask(folder, *words))


def _ask(folder: str, *words: str) -> bytes:
    if which("git") is None:
        raise GitMissing
    repository = Repository.of(folder)
    if repository is None:
        raise GitFailed(f"{folder} is in no git repository")
    try:
        return repository.ask(*words, deadline=Deadline(_LOOK_SEC))
    except GitSilent as problem:
        if "--quiet" in words:
            return b""
        raise GitFailed(str(problem)) from None


def line(folder: str, *words: str) -> str:
    """A look whose answer is one line."""
    return os.fsdecode(ask(folder, *words).rstrip(b"\n"))


def do(folder: str, *words: str) -> None:
    _patiently(lambda: _do(folder, *words))


def _do(folder: str, *words: str) -> None:
    # Variables such as GIT_DIR are about another repository than the one at hand.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *_SAFE, "-C", folder, *words],
            env={**environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_WRITE_SEC,
            check=False,
        )
    except FileNotFoundError:
        raise GitMissing from None
    except OSError as problem:
        raise GitFailed(f"git cannot be run: {problem.strerror}") from None
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git {words[0]} has not ended in {_WRITE_SEC:.0f} s") from None
    if done.returncode != 0:
        raise GitFailed(_sentence(words, done.stderr))


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


def _sentence(words: Sequence[str], said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines() or ["it gave no reason"]
    return f"git {words[0]}: {lines[-1].removeprefix('fatal: ').removeprefix('error: ')}"
