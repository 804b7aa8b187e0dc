"""A job's folder, as a worker with a worktree of its own sees it."""

from __future__ import annotations

from mam_core.work.relocation import Relocation
from tests.support.rows import each_row

INSIDE = Relocation("/repo", "/repo/.mam/worktrees/a")
OUTSIDE = Relocation("/somewhere/repo", "/somewhere/trees/a")


@each_row(
    ("relocation", "workdir", "place"),
    [
        (INSIDE, "/repo", "/repo/.mam/worktrees/a"),
        (INSIDE, "/repo/src/core", "/repo/.mam/worktrees/a/src/core"),
        (INSIDE, "/repository", "/repository"),
        (INSIDE, "/elsewhere", "/elsewhere"),
        (INSIDE, "/", "/"),
        (INSIDE, "/repo/.mam/worktrees/a", "/repo/.mam/worktrees/a"),
        (INSIDE, "/repo/.mam/worktrees/a/src", "/repo/.mam/worktrees/a/src"),
        (INSIDE, "/repo/.mam/worktrees/b/src", "/repo/.mam/worktrees/b/src"),
        (INSIDE, "/repo/.mam/other", "/repo/.mam/worktrees/a/.mam/other"),
        (OUTSIDE, "/somewhere/repo/src", "/somewhere/trees/a/src"),
        (OUTSIDE, "/somewhere/trees/b", "/somewhere/trees/b"),
        (OUTSIDE, "/home/ann", "/home/ann"),
        (Relocation("/repo", "/repo/a"), "/repo/b", "/repo/a/b"),
    ],
)
def test_what_lies_in_the_repository_runs_at_the_same_place_in_the_worktree(
    relocation: Relocation, workdir: str, place: str
) -> None:
    assert relocation.place(workdir) == place
