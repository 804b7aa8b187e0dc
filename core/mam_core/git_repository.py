"""Git asked about a folder that an agent works in, so that nothing of the folder's runs.

A repository can name programs in its settings, and an agent can write those. We
run as the worker, outside of the agent's limits, so: no hooks, no file system
monitor, no external diff, no fetching, no look into submodules, and filters only
where the user's own settings name them (git-lfs is set up there). Nothing is
locked that the agent's own git might want.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from functools import cached_property
from time import monotonic

_OPTIONS = (
    "--no-optional-locks",
    "--literal-pathspecs",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.splitIndex=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "log.showSignature=false"),
)
_FILTERS = r"^filter\..*\.(clean|smudge|process|required)$"
_MAX_CONFIG_BYTES = 1024 * 1024


class GitSilent(Exception):
    """No git, no repository, no answer in time, or a refusal; it says which."""


class Deadline:
    """How long several questions may take together."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds

    @property
    def left(self) -> float:
        return max(self._end - monotonic(), 0.0)


class Repository:
    """The repository that a folder is in."""

    def __init__(self, workdir: str, top: str, git_dir: str) -> None:
        self.workdir = workdir
        self.top = top  #: the top of the work tree
        self.git_dir = git_dir

    @classmethod
    def of(cls, workdir: str) -> Repository | None:
        """As git would find it; asking git costs a process, and most of a short job's start."""
        workdir = top = os.path.realpath(workdir)
        while not os.path.exists(mark := os.path.join(top, ".git")):
            above = os.path.dirname(top)
            if above == top:
                return None
            top = above
        return cls(workdir, top, _pointed_at(mark, "gitdir: ") if os.path.isfile(mark) else mark)

    def ask(
        self,
        *words: str,
        deadline: Deadline,
        given: bytes = b"",
        environ: Mapping[str, str] | None = None,
        at_top: bool = False,
    ) -> bytes:
        """What git prints. Raises `GitSilent`."""
        where = self.top if at_top else self.workdir
        try:
            if not deadline.left:
                raise subprocess.TimeoutExpired("git", 0)
            done = subprocess.run(
                ["git", *_OPTIONS, "-C", where, *words],
                # Nothing to give: then it need not be waited for that it was read.
                input=given or None,
                stdin=None if given else subprocess.DEVNULL,
                env={**_environ(), **self._no_filters(deadline), **(environ or {})},
                capture_output=True,
                timeout=deadline.left,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise GitSilent(f"git {words[0]} took too long") from None
        except OSError as problem:
            raise GitSilent(f"git cannot be run: {problem.strerror}") from None
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"]
            raise GitSilent(f"git {words[0]}: {said[-1].removeprefix('fatal: ')}")
        return done.stdout

    def _no_filters(self, deadline: Deadline) -> dict[str, str]:
        """Settings that make nothing of each filter that the repository's own settings name."""
        if not self._may_name_filters:
            return {}
        if self._overrides is None:
            self._overrides = self._silenced(deadline)
        return self._overrides

    _overrides: dict[str, str] | None = None

    @cached_property
    def _may_name_filters(self) -> bool:
        """Looked up in the files, which costs no process: few repositories do."""
        common = os.path.join(self.git_dir, "commondir")
        shared = _pointed_at(common, "") if os.path.isfile(common) else self.git_dir
        settings = b""
        for path in (os.path.join(shared, "config"), os.path.join(self.git_dir, "config.worktree")):
            try:
                with open(path, "rb") as file:
                    settings += file.read(_MAX_CONFIG_BYTES)
            except OSError:
                continue
        folded = settings.lower()
        return b"filter" in folded or b"include" in folded

    def _silenced(self, deadline: Deadline) -> dict[str, str]:
        found: set[str] = set()
        for scope in ("--local", "--worktree"):
            words = ("config", scope, "--includes", "--null", "--name-only", "--get-regexp")
            done = subprocess.run(
                ["git", *_OPTIONS, "-C", self.workdir, *words, _FILTERS],
                env=_environ(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=deadline.left,
                check=False,
            )
            found.update(os.fsdecode(name) for name in done.stdout.split(b"\0") if name)
        filters = sorted({name.rpartition(".")[0] for name in found})
        pairs = [
            (f"{name}.{key}", "false" if key == "required" else "")
            for name in filters
            for key in ("clean", "smudge", "process", "required")
        ]
        told = {"GIT_CONFIG_COUNT": str(len(pairs))}
        for number, (key, value) in enumerate(pairs):
            told[f"GIT_CONFIG_KEY_{number}"] = key
            told[f"GIT_CONFIG_VALUE_{number}"] = value
        return told


def _environ() -> dict[str, str]:
    # Variables such as GIT_DIR are about another repository than the job's.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}


def _pointed_at(path: str, mark: str) -> str:
    """The folder that a file of git names, as seen from where the file stands."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            named = file.read(4096).strip().removeprefix(mark)
    except OSError:
        named = ""
    return os.path.normpath(os.path.join(os.path.dirname(path), named))
