"""A work tree kept as it is, with what is not committed, and nothing of the user's is touched.

Git's own way: a tree object, made through an index of ours in a private folder,
and a name below ``refs/mam/`` that keeps it from being collected as garbage. The
user's index, branches and files stay as they are. Files that are ignored are not
part of it; large ones that are not tracked are left out, and named.
"""

from __future__ import annotations

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
        if tracked_changed:
            ours.ask("add", "--update", "--ignore-errors", "--", ".")
        listed = ours.ask("ls-files", "--others", "--exclude-standard", "-z")
        chosen, left_out = _chosen(repository.top, [n for n in listed.split(b"\0") if n])
        if chosen:
            given = b"".join(name + b"\0" for name in chosen)
            # One that has gone meanwhile is no reason to fail.
            words = ("--add", "--remove", "--replace", "-z", "--stdin")
            ours.ask("update-index", *words, given=given)
        tree = ours.ask("write-tree").decode("ascii", "replace").strip()
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
            # With its date, by which git knows which of its entries are too young to be believed.
            shutil.copy2(os.path.join(repository.git_dir, "index"), index)

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
