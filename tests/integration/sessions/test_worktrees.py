"""A worktree of its own for each session, and nothing in it is ever lost."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from mam_core import worktrees
from mam_core.errors import MamError
from mam_core.work.relocation import Relocation
from mam_core.worktrees import Worktree, WorktreeError, WouldBeLost
from tests.support.repositories import git
from tests.support.sessions import repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


@pytest.fixture
def registry(repo: Path) -> str:
    return str(repo / ".mam" / "jobs")


@pytest.fixture
def tree(repo: Path, registry: str) -> Worktree:
    wanted = worktrees.planned(registry, "one", str(repo))
    assert worktrees.create(wanted)
    return wanted


class TestMade:
    def test_beside_the_registry_on_a_branch_of_its_own(self, repo: Path, tree: Worktree) -> None:
        path = repo / ".mam" / "worktrees" / "one"
        assert tree == Worktree(str(repo), str(path), "mam/one", git(repo, "rev-parse", "HEAD"))
        assert (path / "src" / "main").read_text() == "main\n"
        assert git(path, "branch", "--show-current") == "mam/one"
        assert git(repo, "status", "--porcelain") == ""  # git does not see it
        assert worktrees.listed(str(repo / ".mam" / "jobs")) == [str(path)]
        assert worktrees.relocation_to(str(path)) == Relocation(str(repo), str(path))

    def test_again_it_is_taken_up_as_it_is(self, repo: Path, registry: str, tree: Worktree) -> None:
        Path(tree.path, "draft").write_text("half done")
        again = worktrees.planned(registry, "one", str(repo / "src"))
        assert not again.is_new
        assert not worktrees.create(again)
        assert Path(tree.path, "draft").read_text() == "half done"

    def test_anew_from_its_branch_when_somebody_removed_the_folder(
        self, repo: Path, registry: str, tree: Worktree
    ) -> None:
        Path(tree.path, "readme").write_text("better\n")
        git(Path(tree.path), "commit", "--quiet", "--all", "--message=better")
        shutil.rmtree(tree.path)
        again = worktrees.planned(registry, "one", str(repo))
        assert again.is_new
        assert not worktrees.create(again)  # the branch was there
        assert Path(tree.path, "readme").read_text() == "better\n"

    def test_while_another_process_is_making_one(
        self, repo: Path, registry: str, tree: Worktree
    ) -> None:
        """git notes a worktree in several steps; until the last one, `git worktree list` fails."""
        half = repo / ".git" / "worktrees" / "half"
        half.mkdir()
        (half / "gitdir").write_text(f"{repo}/half/.git\n")
        (half / "commondir").touch()
        looked = subprocess.run(["git", "worktree", "list"], cwd=repo, check=False)
        assert looked.returncode != 0
        done = threading.Timer(0.2, (half / "commondir").write_text, ("../..\n",))
        done.start()
        assert worktrees.relocation_to(tree.path) == Relocation(str(repo), tree.path)
        done.join()
        (half / "commondir").write_text("")
        done = threading.Timer(0.2, shutil.rmtree, (half,))
        done.start()
        assert worktrees.create(worktrees.planned(registry, "two", str(repo)))
        done.join()

    def test_not_where_there_is_no_repository(self, tmp_path: Path) -> None:
        with pytest.raises(WorktreeError, match="is in no git repository"):
            worktrees.planned(str(tmp_path / "jobs"), "one", str(tmp_path))

    def test_not_where_there_is_no_commit(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "--quiet")
        with pytest.raises(WorktreeError, match="has no commit yet"):
            worktrees.planned(str(tmp_path / "jobs"), "one", str(tmp_path))

    def test_not_over_something_else(self, repo: Path, registry: str) -> None:
        place = repo / ".mam" / "worktrees" / "one"
        place.mkdir(parents=True)
        (place / "thesis.tex").write_text("years of work")
        with pytest.raises(WorktreeError, match="is no worktree: move it away first"):
            worktrees.planned(registry, "one", str(repo))
        assert (place / "thesis.tex").exists()

    def test_not_of_a_worktree(self, repo: Path, registry: str, tree: Worktree) -> None:
        with pytest.raises(WorktreeError, match="name a folder of the repository itself"):
            worktrees.planned(registry, "two", tree.path)

    def test_without_a_program_that_the_repository_names(
        self, repo: Path, registry: str, tmp_path: Path
    ) -> None:
        """An agent can write hooks and settings; whoever makes a worktree does not run them."""
        hook = repo / ".git" / "hooks" / "post-checkout"
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
        git(repo, "config", "core.fsmonitor", str(hook))
        made = worktrees.planned(registry, "one", str(repo))
        worktrees.create(made)
        worktrees.remove(made)
        assert not (tmp_path / "ran").exists()


class TestRemoved:
    def test_when_nothing_would_be_lost(self, repo: Path, tree: Worktree) -> None:
        worktrees.remove(tree)
        assert not Path(tree.path).exists()
        assert git(repo, "branch", "--list", "mam/*") == ""
        worktrees.remove(tree)  # again: it is as wished

    def test_when_its_commits_are_on_another_branch(self, repo: Path, tree: Worktree) -> None:
        Path(tree.path, "readme").write_text("better\n")
        git(Path(tree.path), "commit", "--quiet", "--all", "--message=better")
        git(repo, "merge", "--quiet", "mam/one")
        worktrees.remove(tree)
        assert (repo / "readme").read_text() == "better\n"
        assert git(repo, "branch", "--list", "mam/*") == ""

    def test_when_its_commits_are_on_a_remote(
        self, repo: Path, tree: Worktree, tmp_path: Path
    ) -> None:
        path = Path(tree.path)
        (path / "readme").write_text("better\n")
        git(path, "commit", "--quiet", "--all", "--message=better")
        git(repo, "init", "--quiet", "--bare", str(tmp_path / "remote"))
        git(repo, "remote", "add", "origin", str(tmp_path / "remote"))
        git(path, "push", "--quiet", "origin", "mam/one")
        worktrees.remove(tree)
        assert not path.exists()

    def test_when_all_that_git_ignores_are_caches(self, tree: Worktree) -> None:
        path = Path(tree.path)
        _ignore(path, "*.pyc", "__pycache__", "node_modules", ".venv", "build/")
        for name in ("src/__pycache__/a.pyc", "node_modules/b/c.js", ".venv/bin/d", "build/x/y"):
            (path / name).parent.mkdir(parents=True)
            (path / name).write_text("made again")
        with pytest.raises(WouldBeLost, match="build"):
            worktrees.remove(tree)
        (path / "build" / "x" / "y").unlink()
        worktrees.remove(tree)
        assert not path.exists()

    def test_when_an_agent_took_a_branch_of_its_own(self, repo: Path, tree: Worktree) -> None:
        path = Path(tree.path)
        git(path, "switch", "--quiet", "--create", "feature")
        (path / "readme").write_text("better\n")
        git(path, "commit", "--quiet", "--all", "--message=better")
        worktrees.remove(tree)
        assert git(repo, "show", "feature:readme") == "better"


def _change(path: Path) -> None:
    (path / "readme").write_text("half done\n")


def _stage(path: Path) -> None:
    (path / "readme").write_text("half done\n")
    git(path, "add", "--all")


def _add(path: Path) -> None:
    git(path, "config", "status.showUntrackedFiles", "no")  # git itself would not see them
    (path / "a").mkdir()
    (path / "a" / "new").write_text("new")
    (path / "b").write_text("new")


def _commit(path: Path) -> None:
    _change(path)
    git(path, "commit", "--quiet", "--all", "--message=better")


def _commit_apart(path: Path) -> None:
    git(path, "switch", "--quiet", "--detach")
    _commit(path)


def _stash(path: Path) -> None:
    _change(path)
    git(path, "stash", "--quiet")


def _hide(path: Path) -> None:
    git(path, "update-index", "--assume-unchanged", "readme")
    _change(path)


def _hide_well(path: Path) -> None:
    git(path, "update-index", "--skip-worktree", "readme")
    _change(path)


def _begin_merge(path: Path) -> None:
    git(path, "branch", "side")
    git(path, "commit", "--quiet", "--allow-empty", "--message=mine")
    git(path, "switch", "--quiet", "side")
    git(path, "commit", "--quiet", "--allow-empty", "--message=theirs")
    git(path, "merge", "--quiet", "--no-commit", "--no-ff", "mam/one")


def _ignore(path: Path, *names: str) -> None:
    """By a file that git does not count as a change."""
    exclude = Path(git(path, "rev-parse", "--git-path", "info/exclude"))
    (path / exclude).parent.mkdir(exist_ok=True)
    (path / exclude).write_text("".join(f"{name}\n" for name in names))


def _make_a_result(path: Path) -> None:
    _ignore(path, "out/")
    (path / "out").mkdir()
    (path / "out" / "result.txt").write_text("42\n")


def _make_two_results(path: Path) -> None:
    _ignore(path, "*.csv", "out/")
    (path / "out" / "deep").mkdir(parents=True)
    (path / "out" / "deep" / "b").write_text("42\n")
    (path / "a.csv").write_text("42\n")


def _clone_within(path: Path) -> None:
    """Out of git's sight, with a commit that is nowhere else."""
    _ignore(path, "node_modules/")
    (path / "node_modules").mkdir()
    repository(path / "node_modules" / "lib")


def _lose_its_git(path: Path) -> None:
    """git would then speak of the repository around it, in which all is well."""
    (path / ".git").unlink()


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (_change, "1 uncommitted change$"),
        (_stage, "1 uncommitted change$"),
        (_add, "2 untracked files$"),
        (_commit, "1 commit that no other branch has$"),
        (_commit_apart, "1 commit that no other branch has$"),
        (_stash, "1 stash$"),
        (_hide, "1 file that git was told not to look at$"),
        (_hide_well, "1 file that git was told not to look at$"),
        (_begin_merge, "a merge under way, and 1 commit that no other branch has$"),
        (_make_a_result, r"what git ignores \(out/\)$"),
        (_make_two_results, r"2 things that git ignores \(a.csv\)$"),
        (_clone_within, r"another repository in it \(node_modules/lib\)$"),
        (_lose_its_git, "files, and is no longer a worktree of git$"),
    ],
)
def test_what_would_be_lost_forbids_it_and_is_said(
    repo: Path, tree: Worktree, work: object, words: str
) -> None:
    """Issue: a worktree with uncommitted or unpushed work is never deleted."""
    assert callable(work)
    path = Path(tree.path)
    work(path)
    before = {str(one): one.is_file() and one.read_bytes() for one in path.rglob("*")}
    with pytest.raises(WouldBeLost, match=f"the worktree {path} stays: it has {words}"):
        worktrees.remove(tree)
    assert before == {str(one): one.is_file() and one.read_bytes() for one in path.rglob("*")}
    assert git(repo, "branch", "--list", "mam/one").endswith("mam/one")


def test_a_commit_of_a_branch_whose_folder_is_gone_keeps_the_branch(
    repo: Path, tree: Worktree
) -> None:
    _commit(Path(tree.path))
    shutil.rmtree(tree.path)
    with pytest.raises(WouldBeLost):
        worktrees.remove(tree)
    assert git(repo, "show", "mam/one:readme") == "half done"


def test_a_git_that_is_not_there_is_one_sentence(
    repo: Path, registry: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MamError, match="git is not installed"):
        worktrees.planned(registry, "one", str(repo))
