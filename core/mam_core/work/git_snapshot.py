"""A work tree kept as it is, with what is not committed, and nothing of the user's is touched.

Git's own way: a tree object, made through an index of ours in a private folder,
and a name below ``refs/mam/`` that keeps it from being collected as garbage. The
user's index, branches and files stay as they are. Files that are ignored are not
part of it; large ones that are not tracked are left out, and named.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from typing import NamedTuple

from mam_core.git_repository import Deadline, Repository

REFS = "refs/mam"

#: Files that are not tracked: so large each, so much and so many together.
MAX_FILE_BYTES = 10 * 1024 * 1024
MAX_TOTAL_BYTES = 100 * 1024 * 1024
MAX_FILES = 20_000
_NAMED = 20

#: Of a repository with a million files.
_MAX_INDEX_BYTES = 512 * 1024 * 1024


class Snapshot(NamedTuple):
    """A tree, and what is not in it."""

    tree: str
    left_out: tuple[str, ...] = ()  #: the first of them
    left_out_count: int = 0


def take(
    repository: Repository, deadline: Deadline, *, keep_as: str = "", tracked_changed: bool = True
) -> Snapshot:
    """Raises `GitSilent` and OSError. Without `keep_as` git may collect it some day."""
    with tempfile.TemporaryDirectory(prefix="mam-git-") as place:
        ours = _Ours(repository, deadline, os.path.join(place, "index"))
        changed = ours.changed() if tracked_changed else []
        listed = ours.names("ls-files", "--others", "--exclude-standard", "-z")
        chosen, left_out = _chosen(repository.top, listed)
        if given := b"".join(name + b"\0" for name in [*changed, *chosen]):
            # One that has gone meanwhile is no reason to fail.
            words = ("--add", "--remove", "--replace", "-z", "--stdin")
            ours.ask("update-index", *words, given=given)
        # A sparse or partial clone lacks some of what it has never checked out.
        tree = ours.ask("write-tree", "--missing-ok").decode("ascii", "replace").strip()
        if keep_as:
            ours.ask("update-ref", f"{REFS}/{keep_as}", tree)
    named = tuple(os.fsencode(name).decode("utf-8", "replace") for name in left_out[:_NAMED])
    return Snapshot(tree, named, len(left_out))


class _Ours:
    """Git with an index of ours: a copy, so that only what has changed is read."""

    def __init__(self, repository: Repository, deadline: Deadline, index: str) -> None:
        self._repository = repository
        self._deadline = deadline
        self._environ = {"GIT_INDEX_FILE": index}
        with suppress(FileNotFoundError):  # nothing was ever added
            _copy_index(os.path.join(repository.git_dir, "index"), index)

    def changed(self) -> list[bytes]:
        """What is tracked and has changed. Not by `git add --update`, which starts a git in each
        submodule that is there, and that reads the submodule's own settings."""
        names = self.names("diff-files", "--name-only", "--ignore-submodules=dirty", "-z")
        top = os.fsencode(self._repository.top)
        return [name for name in dict.fromkeys(names) if _can_be_read(os.path.join(top, name))]

    def names(self, *words: str) -> list[bytes]:
        return [name for name in self.ask(*words).split(b"\0") if name]

    def ask(self, *words: str, given: bytes = b"") -> bytes:
        return self._repository.ask(
            *words, deadline=self._deadline, given=given, environ=self._environ, at_top=True
        )


def _chosen(top: str, names: list[bytes]) -> tuple[list[bytes], list[str]]:
    """Those that go in, and those that are left out."""
    chosen: list[bytes] = []
    left_out: list[str] = []
    total = 0
    for name in names:
        size = _size(os.path.join(os.fsencode(top), name))
        if (
            size is None
            or size > MAX_FILE_BYTES
            or total + size > MAX_TOTAL_BYTES
            or len(chosen) >= MAX_FILES
        ):
            left_out.append(os.fsdecode(name))
        else:
            total += size
            chosen.append(name)
    return chosen, left_out


def _copy_index(source: str, target: str) -> None:
    """With its date, by which git knows which of its entries are too young to be believed."""
    with open(os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as read:
        state = os.fstat(read.fileno())
        if not stat.S_ISREG(state.st_mode) or state.st_size > _MAX_INDEX_BYTES:
            raise OSError(errno.EINVAL, "git's index is no regular file, or too large")
        with open(target, "wb") as write:
            shutil.copyfileobj(read, write)
    os.utime(target, ns=(state.st_atime_ns, state.st_mtime_ns))


def _can_be_read(path: bytes) -> bool:
    """Or is gone, or no file: git says which."""
    return os.access(path, os.R_OK) or not os.path.isfile(path)


def _size(path: bytes) -> int | None:
    """None for what git cannot keep: a repository within this one, a pipe, what is not ours."""
    if path.endswith(b"/"):
        return None
    try:
        state = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISLNK(state.st_mode):
        return 0
    if not stat.S_ISREG(state.st_mode) or not os.access(path, os.R_OK):
        return None
    return state.st_size
