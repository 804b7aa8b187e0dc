"""A git worktree for each session, so that agents side by side never share a file.

It stands in ``worktrees/NAME`` beside the registry folder, on a branch ``mam/NAME``
of its own. It is removed only when nothing would be lost by it: no change, no new or
ignored file but caches, no repository within, no stash, no half-done merge, and no
commit that no other branch has.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

from mam_core.disk import Folder
from mam_core.errors import MamError, StoreError
from mam_core.git import GitFailed, add_worktree, ask, do, line, main_folder
from mam_core.sessions import Session, check_name
from mam_core.work.relocation import Relocation
from mam_core.worktree_contents import contents, many

HOME = "worktrees"
BRANCH = "mam/"


class WorktreeError(MamError):
    """A git worktree cannot be had here."""

    title = "Worktree"


class WouldBeLost(WorktreeError):
    """The worktree holds work that is nowhere else."""


class Worktree(NamedTuple):
    """Where a session's files are, and where they come from."""

    repository: str  #: the folder of the repository itself
    path: str
    branch: str
    base: str  #: the commit that it began with
    is_new: bool = True  #: False: it was there, with whatever was done in it

    @property
    def relocation(self) -> Relocation:
        return Relocation(self.repository, self.path)


def home_of(registry_path: str) -> str:
    return os.path.join(os.path.dirname(os.path.realpath(registry_path)), HOME)


def of_session(registry_path: str, session: Session) -> Worktree | None:
    """The worktree of a session on record. Place and branch are those that its name gives it: a
    file that somebody edited must not make us remove anything else."""
    if session.worktree is None or session.repository is None:
        return None
    path = os.path.join(home_of(registry_path), session.name)
    if session.worktree != path:
        raise WorktreeError(f"{session.worktree} is not where mam makes worktrees: it stays")
    is_new = not os.path.lexists(path)
    base = session.base or "HEAD"
    return Worktree(session.repository, path, BRANCH + session.name, base, is_new)


def relocation_to(worktree: str) -> Relocation:
    """What `mam work --worktree` needs to know of it."""
    path = os.path.realpath(worktree)
    if not os.path.isdir(path):
        raise WorktreeError(f"there is no worktree {path}")
    if _toplevel(path) != path:
        raise WorktreeError(f"{path} is not the top of a git worktree")
    return Relocation(main_folder(path), path)


def planned(registry_path: str, name: str, workdir: str) -> Worktree:
    """The worktree that a session of this name would have; nothing is changed."""
    workdir = os.path.realpath(workdir)
    top = _toplevel(workdir)
    repository = main_folder(workdir)
    if top != repository:
        raise WorktreeError(
            f"{workdir} is in a worktree of {repository}: name a folder of the repository itself"
        )
    base = line(workdir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if not base:
        raise WorktreeError(f"{repository} has no commit yet, and a worktree begins with one")
    path = os.path.join(home_of(registry_path), check_name(name))
    wanted = Worktree(repository, path, BRANCH + name, base)
    if not os.path.lexists(path):
        return wanted
    if not os.path.isdir(path) or _toplevel_or_none(path) != path:
        raise WorktreeError(f"{path} is there and is no worktree: move it away first")
    if main_folder(path) != repository:
        raise WorktreeError(f"{path} is a worktree of another repository: move it away first")
    return wanted._replace(is_new=False)


def create(wanted: Worktree) -> bool:
    """Make it unless it is there; the answer is whether its branch was made, too.

    A branch of its name that is there already is taken up as it is: it holds what an earlier
    session did.
    """
    if not wanted.is_new:
        return False
    home = Folder.open(os.path.dirname(wanted.path), create=True)
    with home, suppress(FileExistsError):
        home.put_new(".gitignore", b"*\n")
    if _head(wanted):
        # Somebody removed its folder; git's note of it is in the way. Not `prune`, which forgets
        # the worktrees of disks that are not mounted right now, too.
        do(wanted.repository, "worktree", "remove", "--", wanted.path)
    has_branch = _has_branch(wanted)
    begin = [wanted.path, wanted.branch]
    if not has_branch:
        begin = ["-b", wanted.branch, wanted.path, wanted.base]
    add_worktree(wanted.repository, wanted.path, *begin)
    return not has_branch


def listed(registry_path: str) -> list[str]:
    """The worktrees that stand beside a registry, by path; of sessions that are or were."""
    home = home_of(registry_path)
    try:
        with Folder.open(home) as folder:
            names = sorted(folder.names())
    except (FileNotFoundError, StoreError):
        return []
    paths = (os.path.join(home, name) for name in names)
    return [path for path in paths if os.path.exists(os.path.join(path, ".git"))]


def losses(worktree: Worktree) -> list[str]:
    """What would be lost if it were removed, each as words that follow "it has"."""
    found = []
    if os.path.lexists(worktree.path):
        # Without its .git, git would speak of the repository around it, and all would seem well.
        if _toplevel_or_none(worktree.path) != worktree.path:
            return ["files, and is no longer a worktree of git"]
        if main_folder(worktree.path) != worktree.repository:
            return [f"become a worktree of another repository than {worktree.repository}"]
        found = contents(worktree.path)
    return [*found, *_stashes(worktree), *_commits(worktree)]


def remove(worktree: Worktree, *, with_branch: bool = True) -> None:
    """Raises `WouldBeLost` that says what; then everything stays as it is."""
    if kept := losses(worktree):
        raise WouldBeLost(f"the worktree {worktree.path} stays: it has {', and '.join(kept)}")
    if _head(worktree):
        # Without --force: git looks once more, at the last moment.
        do(worktree.repository, "worktree", "remove", "--", worktree.path)
    if with_branch and _has_branch(worktree):
        do(worktree.repository, "branch", "--quiet", "-D", "--", worktree.branch)


# -- what is known of it elsewhere --------------------------------------------------------------


def _stashes(worktree: Worktree) -> list[str]:
    """Stashes are the repository's: those that were made on this branch."""
    made = ask(worktree.repository, "stash", "list", "-z", "--format=%gs").split(b"\0")
    branch = worktree.branch.encode()
    starts = (b"WIP on " + branch + b":", b"On " + branch + b":")
    count = sum(1 for words in made if words.startswith(starts))
    return [many(count, "stash", "es")] if count else []


def _commits(worktree: Worktree) -> list[str]:
    tips = [tip for tip in [_head(worktree)] if tip]
    if _has_branch(worktree):
        tips.append(line(worktree.repository, "rev-parse", f"refs/heads/{worktree.branch}"))
    if not tips:
        return []
    elsewhere = (f"--exclude={worktree.branch}", "--branches", "--remotes")
    count = int(line(worktree.repository, "rev-list", "--count", *tips, "--not", *elsewhere))
    return [f"{many(count, 'commit')} that no other branch has"] if count else []


# -- git ---------------------------------------------------------------------------------------


def _toplevel(folder: str) -> str:
    found = _toplevel_or_none(folder)
    if found is None:
        raise WorktreeError(f"{folder} is in no git repository")
    return found


def _toplevel_or_none(folder: str) -> str | None:
    try:
        return os.path.realpath(line(folder, "rev-parse", "--show-toplevel"))
    except GitFailed:
        return None


def _head(worktree: Worktree) -> str:
    """The commit that git has noted for it, also when its folder is gone; empty: it is none."""
    notes = ask(worktree.repository, "worktree", "list", "--porcelain").split(b"\n\n")
    for note in notes:
        place, _, rest = note.partition(b"\n")
        if os.fsdecode(place.removeprefix(b"worktree ")) == worktree.path:
            head, _, _ = rest.removeprefix(b"HEAD ").partition(b"\n")
            return head.decode("ascii", "replace")
    return ""


def _has_branch(worktree: Worktree) -> bool:
    reference = f"refs/heads/{worktree.branch}"
    return bool(line(worktree.repository, "for-each-ref", "--format=%(refname)", reference))
