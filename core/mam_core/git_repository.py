"""Git run on a person's repository so that no program named by the repository runs.

An agent can write every file of a repository: its settings (filters, hooks, an ssh
command, aliases, a file system monitor), its attributes, its submodules. We run git
outside of the agent's limits, so git never reads those settings. It gets a folder in
place of the repository's common one, which links to the objects and names there and
holds settings of ours: the few of the repository's own that say how files are stored.
What the user's own settings name still runs (git-lfs is set up there).
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic

_OPTIONS = (
    "--no-optional-locks",
    "--literal-pathspecs",
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.splitIndex=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "log.showSignature=false"),
    *("-c", "commit.gpgSign=false"),
    *("-c", "submodule.recurse=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
)

#: What git looks for in a common folder, besides its settings and hooks.
_LINKED = (
    *("objects", "refs", "packed-refs", "reftable", "logs", "info", "shallow", "worktrees"),
    "lfs",
)

#: Settings that say how files are stored, and whose values name no program and no file.
_KEPT = {
    "core": {
        *("repositoryformatversion", "filemode", "symlinks", "ignorecase", "precomposeunicode"),
        *("autocrlf", "eol", "safecrlf", "checkstat", "trustctime", "longpaths"),
        *("sparsecheckout", "sparsecheckoutcone"),
    },
    "extensions": {"objectformat", "compatobjectformat", "refstorage", "relativeworktrees"},
    "index": {"sparse"},
}
_SECTION = re.compile(r"\[\s*([A-Za-z0-9.-]+)\s*\](.*)")
_SETTING = re.compile(
    r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*\"?([A-Za-z0-9-]{0,32})\"?\s*)?(?:[#;].*)?"
)
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
        named = os.path.join(git_dir, "commondir")
        #: The folder that all work trees of the repository share.
        self.common_dir = _pointed_at(named, "") if os.path.isfile(named) else git_dir

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
        try:
            with self._common_stand_in(deadline) as places:
                where = self.top if at_top else self.workdir
                return _run(where, words, {**places, **(environ or {})}, deadline, given)
        except OSError as problem:
            raise GitSilent(f"git cannot be run: {problem.strerror}") from None

    def add_worktree(self, path: str, words: Sequence[str], deadline: Deadline) -> None:
        """A work tree at `path`, of the branch and commit in `words`. Raises `GitSilent`."""
        try:
            os.makedirs(os.path.join(self.common_dir, "worktrees"), exist_ok=True)
            with self._common_stand_in(deadline) as places:
                add = ("worktree", "add", "--quiet", "--no-checkout")
                _run(self.top, (*add, *words), places, deadline)
                mark = os.path.join(path, ".git")
                # Git wrote down the stand-in.
                noted = os.path.realpath(_pointed_at(mark, "gitdir: "))
                with open(mark, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(f"gitdir: {noted}\n")
            # Only now, by settings of ours: those of the repository name filters.
            words = ("reset", "--hard", "--quiet", "--no-recurse-submodules")
            try:
                Repository(path, path, noted).ask(*words, deadline=deadline)
            except GitSilent:
                self.ask("worktree", "remove", "--force", "--", path, deadline=Deadline(60))
                raise
        except OSError as problem:
            raise GitSilent(f"git cannot be run: {problem.strerror}") from None

    @contextmanager
    def _common_stand_in(self, deadline: Deadline) -> Iterator[dict[str, str]]:
        """Git's variables for this repository, with a folder of ours in place of the common one."""
        self._check_owner(deadline)
        with tempfile.TemporaryDirectory(prefix="mam-git-") as place:
            for name in _LINKED:
                real = os.path.join(self.common_dir, name)
                # Git may be making this one right now, and it takes the place of names in "refs".
                if name == "packed-refs" or os.path.exists(real):
                    os.symlink(real, os.path.join(place, name))
            with open(os.path.join(place, "config"), "w", encoding="ascii") as file:
                file.write(self._settings())
            yield {
                "GIT_DIR": self.git_dir,
                "GIT_WORK_TREE": self.top,
                "GIT_COMMON_DIR": place,
                "GIT_OBJECT_DIRECTORY": os.path.join(self.common_dir, "objects"),
            }

    def _settings(self) -> str:
        """Those of the repository that are kept; a later one wins, as in git."""
        found = {"core.bare": "false"}
        for path in (
            os.path.join(self.common_dir, "config"),
            os.path.join(self.git_dir, "config.worktree"),
        ):
            found |= _kept_settings(_content(path))
        lines = (
            f"[{section}]\n\t{name} = {value}\n"
            for section, _, name, value in ((*key.partition("."), v) for key, v in found.items())
        )
        return "".join(lines)

    def _check_owner(self, deadline: Deadline) -> None:
        """Git looks for itself only where it is not told where the repository is."""
        ours = os.geteuid()
        if all(os.stat(path).st_uid == ours for path in (self.top, self.git_dir)):
            return
        _run(self.top, ("rev-parse", "--git-dir"), {}, deadline)


def run_outside(folder: str, *words: str, deadline: Deadline) -> bytes:
    """Git where there is no repository yet. Raises `GitSilent`."""
    try:
        return _run(folder, words, {}, deadline)
    except OSError as problem:
        raise GitSilent(f"git cannot be run: {problem.strerror}") from None


def _run(
    where: str,
    words: tuple[str, ...],
    environ: Mapping[str, str],
    deadline: Deadline,
    given: bytes = b"",
) -> bytes:
    try:
        if not deadline.left:
            raise subprocess.TimeoutExpired("git", 0)
        done = subprocess.run(
            ["git", *_OPTIONS, "-C", where, *words],
            # Nothing to give: then it need not be waited for that it was read.
            input=given or None,
            stdin=None if given else subprocess.DEVNULL,
            env={**_environ(), **environ},
            capture_output=True,
            timeout=deadline.left,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GitSilent(f"git {words[0]} took too long") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"]
        sentence = said[-1].removeprefix("fatal: ").removeprefix("error: ")
        raise GitSilent(f"git {words[0]}: {sentence}")
    return done.stdout


def _environ() -> dict[str, str]:
    # Variables such as GIT_DIR are about another repository than the job's.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}


def _content(path: str) -> str:
    """A file of settings; nothing of one that is no plain file, or too long to be read whole."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        data = file.read(_MAX_CONFIG_BYTES + 1)
    return "" if len(data) > _MAX_CONFIG_BYTES else data.decode("utf-8", "replace")


def _kept_settings(content: str) -> dict[str, str]:
    """Read as git reads them, as far as plain words go: whatever is not one is left out."""
    found: dict[str, str] = {}
    kept: set[str] = set()
    section = ""
    for line in content.splitlines():
        rest = line.strip()
        if rest.startswith("["):
            heading = _SECTION.fullmatch(rest)
            section, rest = (heading[1].lower(), heading[2].strip()) if heading else ("", "")
            kept = _KEPT.get(section, set())
        setting = _SETTING.fullmatch(rest)
        if setting and (name := setting[1].lower()) in kept:
            found[f"{section}.{name}"] = "true" if setting[2] is None else setting[2]
    return found


def _pointed_at(path: str, mark: str) -> str:
    """The folder that a file of git names, as seen from where the file stands."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            named = file.read(4096).strip().removeprefix(mark)
    except OSError:
        named = ""
    return os.path.normpath(os.path.join(os.path.dirname(path), named))
