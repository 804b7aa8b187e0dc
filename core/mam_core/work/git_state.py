"""What git says about a job's folder, before and after: what did an attempt change?

Of a clean folder the commit is all there is to know, and one question tells it.
What is not committed is kept as a snapshot, so that it can be told later what was
there before the attempt, and what the attempt did.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mam_core.git_repository import Deadline, GitSilent, Repository
from mam_core.work.git_snapshot import take

#: Together well below a lease: no heartbeat is sent meanwhile.
_LOOK_SEC = 5.0
_SNAPSHOT_SEC = 10.0
#: What git says in place of a branch.
_DETACHED = "(detached)"


class GitState(NamedTuple):
    """A commit, and whether something was not committed."""

    commit: str | None  #: None: nothing is committed yet
    dirty: bool
    tree: str | None = None  #: when dirty: everything as it was, also what was not tracked
    left_out: tuple[str, ...] = ()  #: files that the tree has not; the first of them
    left_out_count: int = 0
    trouble: str = ""  #: why there is no tree
    branch: str = ""  #: empty: none, as of a commit that was checked out by itself
    changed: int = 0  #: files that are not committed; a folder that is not tracked counts as one

    def to_dict(self) -> dict[str, Any]:
        always = {"commit": self.commit, "dirty": self.dirty}
        more = {
            "tree": self.tree,
            "left_out": list(self.left_out),
            "left_out_count": self.left_out_count,
            "trouble": self.trouble,
            "branch": self.changed and self.branch,
            "changed": self.changed,
        }
        return {**always, **{name: value for name, value in more.items() if value}}


def left_words(before: GitState | None, after: GitState | None) -> str:
    """What an attempt left in its folder, in words; empty where there is nothing to say."""
    if after is None or (before == after and after.tree is not None and not after.left_out_count):
        return ""
    parts = []
    if after.changed:
        was = before.changed if before is not None else 0
        already = f" ({was} before the attempt)" if was else ""
        parts.append(f"{after.changed} changed file{'s'[: after.changed > 1]}{already}")
    if before is not None and after.commit != before.commit:
        parts.append("new commits")
    where = f" on branch {after.branch}" if after.branch else ""
    return f"left {' and '.join(parts)}{where}" if parts else ""


def git_state(
    workdir: str,
    keep_as: str = "",
    *,
    look_sec: float = _LOOK_SEC,
    snapshot_sec: float = _SNAPSHOT_SEC,
) -> GitState | None:
    """None where there is no repository, no git, or no answer in time: it is a fact, not a need.

    `keep_as` names the snapshot below ``refs/mam/``: ``<job_id>/<attempt>/start``.
    """
    repository = Repository.of(workdir)
    if repository is None:
        return None
    try:
        told = repository.ask(
            *("status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z"),
            *("--untracked-files=normal", "--ignore-submodules=dirty"),
            deadline=Deadline(look_sec),
        )
    except GitSilent:
        return None
    commit: str | None = None
    branch = ""
    changed: list[bytes] = []
    for line in told.split(b"\0"):
        # After the first change there are only changes: a file may have any name.
        if not changed and line.startswith(b"# branch.oid "):
            word = line.split()[2].decode("ascii", "replace")
            commit = None if word == "(initial)" else word
        elif not changed and line.startswith(b"# branch.head "):
            word = line.removeprefix(b"# branch.head ").decode("utf-8", "replace")
            branch = "" if word == _DETACHED else word
        elif line and (changed or not line.startswith(b"# ")):
            changed.append(line)
    # Of a file that was renamed its former name follows as a line of its own.
    renamed = sum(line.startswith(b"2 ") for line in changed)
    state = GitState(commit, bool(changed), branch=branch, changed=len(changed) - renamed)
    if not changed:
        return state
    try:
        snapshot = take(
            repository,
            Deadline(snapshot_sec),
            keep_as=keep_as,
            tracked_changed=any(not line.startswith(b"? ") for line in changed),
        )
    except GitSilent as problem:
        return state._replace(trouble=str(problem))
    except OSError as problem:
        return state._replace(trouble=problem.strerror or "no room for an index")
    return state._replace(**snapshot._asdict())
