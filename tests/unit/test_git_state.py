"""A folder's state in git: what is kept of it, and that nothing of the user's is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mam_core.work import git_snapshot
from mam_core.work.git_state import GitState, git_state, left_words
from tests.support.repositories import counted_git, git, new_repository, private_git


@pytest.fixture(autouse=True)
def _private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private_git(monkeypatch, tmp_path)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repo")


def known(folder: Path, keep_as: str = "") -> GitState:
    state = git_state(str(folder), keep_as)
    assert state is not None
    return state


def files_of(repo: Path, state: GitState) -> dict[str, str]:
    assert state.tree is not None
    names = git(repo, "ls-tree", "-r", "--name-only", "-z", state.tree).split("\0")
    return {name: git(repo, "show", f"{state.tree}:{name}") for name in names if name}


class TestAClean:
    def test_folder_is_its_commit_and_nothing_else(self, repo: Path) -> None:
        assert known(repo, "j/1/start").to_dict() == {
            "commit": git(repo, "rev-parse", "HEAD"),
            "dirty": False,
        }
        assert git(repo, "for-each-ref", "refs/mam") == ""

    def test_folder_costs_one_process(
        self, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = counted_git(tmp_path, monkeypatch)
        known(repo)
        assert len(calls.read_text().splitlines()) == 1

    def test_folder_without_a_commit_is_known_as_such(self, tmp_path: Path) -> None:
        empty = tmp_path / "empty"
        empty.mkdir()
        git(empty, "init", "-q")
        state = known(empty)
        assert state == GitState(None, False, branch=state.branch)

    def test_folder_outside_of_git_costs_no_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = counted_git(tmp_path, monkeypatch)
        assert git_state(str(tmp_path)) is None
        assert not calls.exists()


class TestASnapshot:
    def test_has_everything_but_what_is_ignored(self, repo: Path) -> None:
        (repo / ".gitignore").write_text("*.log\n")
        (repo / "a.txt").write_text("changed\n")
        (repo / "new").mkdir()
        odd = "new/Ünï code\n;$(x)"
        (repo / odd).write_text("odd")
        (repo / "x.log").write_text("ignored")
        (repo / "link").symlink_to("/etc/hostname")
        found = files_of(repo, known(repo))
        assert found == {
            ".gitignore": "*.log",
            "a.txt": "changed",
            odd: "odd",
            "link": "/etc/hostname",
        }

    def test_has_what_is_staged_deleted_and_in_conflict(self, repo: Path) -> None:
        (repo / "b.txt").write_text("b\n")
        git(repo, "add", ".")
        git(repo, "commit", "-qm", "second")
        git(repo, "checkout", "-qb", "other", "HEAD~1")
        (repo / "b.txt").write_text("other\n")
        git(repo, "add", ".")
        git(repo, "commit", "-qm", "third")
        with pytest.raises(Exception, match="merge"):
            git(repo, "merge", "main")
        (repo / "a.txt").unlink()
        (repo / "staged").write_text("s")
        git(repo, "add", "staged")
        found = files_of(repo, known(repo))
        assert set(found) == {"b.txt", "staged"}
        assert "<<<<<<<" in found["b.txt"]

    def test_touches_nothing_of_the_users(self, repo: Path) -> None:
        (repo / "a.txt").write_text("changed\n")
        (repo / "new").write_text("n")
        git(repo, "add", "new")
        (repo / "new").write_text("n, and more")
        index = (repo / ".git" / "index").read_bytes()
        before = (git(repo, "status", "--porcelain"), git(repo, "rev-parse", "HEAD", "main"))
        known(repo, "j/1/start")
        assert (repo / ".git" / "index").read_bytes() == index
        after = (git(repo, "status", "--porcelain"), git(repo, "rev-parse", "HEAD", "main"))
        assert after == before
        assert not list((repo / ".git").glob("*.lock"))
        assert git(repo, "for-each-ref", "--format=%(refname)") == (
            "refs/heads/main\nrefs/mam/j/1/start"
        )

    def test_outlives_a_collection_of_garbage(self, repo: Path) -> None:
        (repo / "new").write_text("kept")
        state = known(repo, "j/1/start")
        git(repo, "reflog", "expire", "--expire=now", "--all")
        git(repo, "gc", "--quiet", "--prune=now")
        assert files_of(repo, state)["new"] == "kept"
        git(repo, "fsck", "--strict")
        assert git(repo, "log", "--all", "--format=%s") == "first"

    def test_leaves_large_files_out_and_names_them(
        self, repo: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(git_snapshot, "MAX_FILE_BYTES", 1000)
        (repo / "big.bin").write_bytes(b"x" * 1001)
        (repo / "small").write_text("s")
        os.mkfifo(repo / "pipe")
        inner = new_repository(repo / "inner")
        state = known(repo)
        assert "small" in files_of(repo, state)
        assert set(state.left_out) <= {"big.bin", "inner/", "pipe"}
        assert {"big.bin", "inner/"} <= set(state.left_out)
        assert state.left_out_count == len(state.left_out)
        assert (inner / "a.txt").exists()

    def test_of_a_worktree_is_that_of_its_own_files(self, repo: Path, tmp_path: Path) -> None:
        git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
        (tmp_path / "tree" / "only here").write_text("x")
        assert "only here" in files_of(repo, known(tmp_path / "tree", "j/1/start"))
        assert not known(repo).dirty

    def test_of_a_folder_below_is_that_of_the_whole_repository(self, repo: Path) -> None:
        (repo / "sub").mkdir()
        (repo / "new").write_text("n")
        assert "new" in files_of(repo, known(repo / "sub"))

    def test_that_cannot_be_taken_says_why(self, repo: Path) -> None:
        (repo / "new").write_text("n")
        state = git_state(str(repo), snapshot_sec=0.0)
        assert state is not None
        assert (state.dirty, state.tree) == (True, None)
        assert state.trouble == "git ls-files took too long"


class TestPrograms:
    """A repository names programs, and none of them runs."""

    def trap(self, folder: Path) -> Path:
        trap = folder / "trap.sh"
        trap.write_text(f"#!/bin/sh\necho $0 >>{folder}/sprung\ncat\n")
        trap.chmod(0o755)
        return trap

    @pytest.mark.parametrize("named", ["config", "include", "worktree"])
    def test_that_filter_files_do_not_run(self, repo: Path, tmp_path: Path, named: str) -> None:
        trap = self.trap(tmp_path)
        (repo / ".gitattributes").write_text("* filter=evil.name=x\n*.p filter=proc\n")
        where = ["--local"]
        if named == "include":
            git(repo, "config", "include.path", str(tmp_path / "more"))
            where = ["--file", str(tmp_path / "more")]
        elif named == "worktree":
            git(repo, "config", "extensions.worktreeConfig", "true")
            where = ["--worktree"]
        for key in ("clean", "smudge"):
            git(repo, "config", *where, f"filter.evil.name=x.{key}", str(trap))
        git(repo, "config", *where, "filter.evil.name=x.required", "true")
        git(repo, "config", *where, "filter.proc.process", str(trap))
        (repo / "a.txt").write_text("changed\n")
        (repo / "b.p").write_text("raw\n")
        found = files_of(repo, known(repo))
        assert (found["a.txt"], found["b.p"]) == ("changed", "raw")
        assert not (tmp_path / "sprung").exists()

    def test_that_watch_or_hook_or_diff_do_not_run(self, repo: Path, tmp_path: Path) -> None:
        trap = self.trap(tmp_path)
        hooks = tmp_path / "hooks"
        hooks.mkdir()
        for hook in ("post-index-change", "reference-transaction", "pre-commit"):
            (hooks / hook).symlink_to(trap)
        git(repo, "config", "core.hooksPath", str(hooks))
        git(repo, "config", "core.fsmonitor", str(trap))
        (repo / "new").write_text("n")
        assert known(repo, "j/1/start").tree
        assert not (tmp_path / "sprung").exists()

    def test_a_filter_of_the_users_own_settings_runs(self, repo: Path, tmp_path: Path) -> None:
        """git-lfs is set up there: without it every large file would seem changed."""
        (tmp_path / ".gitconfig").write_text('[filter "upper"]\n\tclean = tr a-z A-Z\n')
        (repo / ".gitattributes").write_text("new filter=upper\n")
        (repo / "new").write_text("loud\n")
        assert files_of(repo, known(repo))["new"] == "LOUD"

    def test_variables_about_another_repository_are_not_believed(
        self, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = new_repository(tmp_path / "other", **{"b.txt": "b"})
        monkeypatch.setenv("GIT_DIR", str(other / ".git"))
        state = known(repo)
        monkeypatch.delenv("GIT_DIR")
        assert state.commit == git(repo, "rev-parse", "HEAD")


def test_a_file_cannot_pass_for_a_commit(repo: Path) -> None:
    git(repo, "mv", "a.txt", "# branch.oid " + "0" * 20)
    assert known(repo).commit == git(repo, "rev-parse", "HEAD")


class TestWhatAnAttemptLeft:
    def test_is_said_in_one_sentence(self, repo: Path) -> None:
        git(repo, "switch", "-q", "-c", "mam/x")
        before = known(repo)
        assert left_words(before, before) == ""
        (repo / "one").write_text("1")
        assert left_words(before, known(repo)) == "left 1 changed file on branch mam/x"
        (repo / "two").write_text("2")
        git(repo, "add", "two")
        after = known(repo)
        assert left_words(before, after) == "left 2 changed files on branch mam/x"
        assert after.to_dict()["changed"] == 2
        git(repo, "commit", "-qm", "two")
        words = "left 1 changed file and new commits on branch mam/x"
        assert left_words(before, known(repo)) == words

    def test_what_was_there_before_is_not_counted_as_its_doing(self, repo: Path) -> None:
        git(repo, "switch", "-q", "--detach")
        (repo / "one").write_text("1")
        before = known(repo)
        assert left_words(before, known(repo)) == "", "the attempt changed nothing"
        (repo / "one").write_text("another")
        words = "left 1 changed file (1 before the attempt)"
        assert left_words(before, known(repo)) == words
        (repo / "two").write_text("2")
        assert left_words(before, known(repo)) == "left 2 changed files (1 before the attempt)"
        assert left_words(None, None) == ""

    def test_a_file_that_was_renamed_is_one(self, repo: Path) -> None:
        name = git(repo, "ls-files").split()[0]
        git(repo, "mv", name, "another name")
        assert known(repo).changed == 1
