"""Where a job runs whose worker has a worktree of its own: the same place, inside the worktree."""

from __future__ import annotations

import os
from typing import NamedTuple


class Relocation(NamedTuple):
    """From a repository to one of its worktrees; both are real paths."""

    repository: str
    worktree: str

    def place(self, workdir: str) -> str:
        """For a real path. What lies outside the repository stays where it is, and so does what
        lies in the worktree already, or in another that stands beside it."""
        inside = below(self.repository, workdir)
        if inside is None or below(self.worktree, workdir) is not None:
            return workdir
        beside = os.path.dirname(self.worktree)
        is_within = below(self.repository, beside) not in (None, "")
        if is_within and below(beside, workdir) is not None:
            return workdir
        return os.path.join(self.worktree, inside) if inside else self.worktree


def below(folder: str, path: str) -> str | None:
    """The way from `folder` to `path`, empty when they are the same; None: it is not inside."""
    if path == folder:
        return ""
    start = folder.rstrip(os.sep) + os.sep
    return path[len(start) :] if path.startswith(start) else None
