"""What the folder of a worktree holds that is nowhere else.

Ignored files count, too: git ignores what need not be in a repository, and that may be the
very result of a job. Only caches by well-known names do not, since whoever made them makes
them again. A repository within counts wherever it is, since its commits may be nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from mam_core.git import ask

#: Folders that a tool makes, and makes again: of Python's tools, and of node.
CACHES = frozenset(
    {
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"),
        *(".tox", ".nox", ".venv", "node_modules"),
    }
)

#: What git leaves in a worktree's own folder while something is half done.
_UNDER_WAY = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
}


def contents(path: str) -> list[str]:
    """Each as words that follow "it has"."""
    return [*_changes(path), *_repositories(path), *_under_way(path)]


def many(count: int, words: str, plural: str = "s") -> str:
    return f"{count} {words}" if count == 1 else f"{count} {words}{plural}"


def _changes(path: str) -> list[str]:
    # "matching": a folder that is ignored as a whole is one entry, however much is in it.
    asked = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching")
    # Not into submodules: git would read their own settings. One that is there counts as a whole.
    said = ask(path, *asked, "--ignore-submodules=dirty", "--no-renames").split(b"\0")
    entries = [entry for entry in said if entry]
    new = sum(1 for entry in entries if entry.startswith(b"??"))
    out_of_sight = [entry[3:] for entry in entries if entry.startswith(b"!!")]
    changed = len(entries) - new - len(out_of_sight)
    hidden = sum(
        1
        for entry in ask(path, "ls-files", "-v", "-z").split(b"\0")
        if entry[:1].islower() or (entry[:1] == b"S" and _is_there(path, entry[2:]))
    )
    counted = ((changed, "uncommitted change"), (new, "untracked file"))
    found = [many(count, words) for count, words in counted if count]
    found += [f"{many(hidden, 'file')} that git was told not to look at"] * bool(hidden)
    return [*found, *_ignored(path, out_of_sight)]


def _ignored(path: str, entries: list[bytes]) -> list[str]:
    """Named, one of them: a person who reads "1 ignored file" would have to look for it."""
    kept = [name for entry in entries if (name := _first_kept(path, os.fsdecode(entry)))]
    if not kept:
        return []
    words = "what git ignores" if len(kept) == 1 else f"{len(kept)} things that git ignores"
    return [f"{words} ({kept[0]})"]


def _first_kept(path: str, name: str) -> str:
    """The first file of an entry that is in no cache; an empty folder holds none."""
    if CACHES.intersection(name.split("/")):
        return ""
    place = os.path.join(path, name)
    if not os.path.isdir(place) or os.path.islink(place):
        return name
    for folder, below, files in os.walk(place):
        below[:] = [one for one in below if one not in CACHES]
        if files or any(os.path.islink(os.path.join(folder, one)) for one in below):
            return name
    return ""


def _repositories(path: str) -> list[str]:
    """Clones and submodules in it, also in what git ignores and in caches."""
    found = list(_nested(path))
    if not found:
        return []
    words = "another repository in it" if len(found) == 1 else f"{len(found)} other repositories"
    return [f"{words} ({min(found)})"]


def _nested(path: str) -> Iterator[str]:
    for folder, below, files in os.walk(path):
        if folder != path and (".git" in below or ".git" in files):
            yield os.path.relpath(folder, path)
        below[:] = [one for one in below if one != ".git"]


def _under_way(path: str) -> list[str]:
    folder = os.fsdecode(ask(path, "rev-parse", "--absolute-git-dir").rstrip(b"\n"))
    found = {
        words for name, words in _UNDER_WAY.items() if os.path.lexists(os.path.join(folder, name))
    }
    return [f"{words} under way" for words in sorted(found)]


def _is_there(path: str, name: bytes) -> bool:
    return os.path.lexists(os.path.join(os.fsencode(path), name))
