"""Worktrees on disk against sessions, with real git."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mam_core import worktrees
from mam_core.operations.doctor import Severity
from mam_core.sessions import Session, SessionFolder
from tests.support.clinic import Clinic
from tests.support.repositories import git
from tests.support.sessions import repository
from tests.support.working import LABEL


@pytest.fixture
def repo(shop: Clinic) -> Path:
    return repository(shop.folder / "repo")


def spawned(shop: Clinic, repo: Path, name: str = "a") -> Path:
    shop.spawn(name, shop.agent("good", "behaves"), "--worktree", "--workdir", str(repo))
    place = shop.kept.get(name).worktree
    assert place is not None
    return Path(place)


def left_behind(shop: Clinic, repo: Path) -> Path:
    """A worktree whose session nobody remembers."""
    shop.add(shop.agent("good", "behaves"))
    shop.ok("pick", "--agent-session", LABEL)
    tree = worktrees.planned(str(shop.path), "a", str(repo))
    worktrees.create(tree)
    return Path(tree.path)


class TestOfNobody:
    def test_one_without_work_is_removed(self, shop: Clinic, repo: Path) -> None:
        place = left_behind(shop, repo)
        finding = shop.only(str(place))
        assert "nothing would be lost" in finding.words
        shop.mended(finding)
        assert not place.exists()
        assert "mam/a" not in git(repo, "branch", "--list")
        assert shop.findings() == []

    @pytest.mark.parametrize("work", ["draft", "commit"])
    def test_one_with_work_is_only_named(self, shop: Clinic, repo: Path, work: str) -> None:
        place = left_behind(shop, repo)
        (place / "draft").write_text("half done")
        if work == "commit":
            git(place, "add", ".")
            git(place, "commit", "-qm", "mine")
        finding = shop.only(str(place))
        assert finding.severity is Severity.NOTE
        assert finding.fix is None
        assert shop.say("doctor", "--fix", "--yes").code == 0
        assert (place / "draft").read_text() == "half done"

    def test_work_that_comes_in_between_is_kept(self, shop: Clinic, repo: Path) -> None:
        place = left_behind(shop, repo)
        finding = shop.only(str(place))
        (place / "late").write_text("words")
        assert shop.mended_already(finding) or not shop.mend(finding).is_done
        assert (place / "late").exists()

    def test_one_in_which_somebody_works_stays(self, shop: Clinic, repo: Path) -> None:
        place = left_behind(shop, repo)
        somebody = subprocess.Popen(["sleep", "300"], cwd=place / "src")
        try:
            finding = shop.only(str(place))
            assert finding.fix is None
            assert f"pid {somebody.pid}" in finding.words
        finally:
            somebody.kill()
            somebody.wait()

    def test_one_of_a_registry_beside_ours_is_not_ours(self, shop: Clinic, repo: Path) -> None:
        place = left_behind(shop, repo)
        other = SessionFolder(str(shop.folder / ".mam" / "jobs2"))
        here = str(shop.folder)
        session = Session("a", "tmux:a", "good", "exec", here, here, "", "ann", "here")
        other.put(session._replace(worktree=str(place)))
        assert shop.findings() == []


class TestOfSessions:
    def test_one_that_is_missing_is_made_again(self, shop: Clinic, repo: Path) -> None:
        place = spawned(shop, repo)
        git(place, "commit", "-qm", "work", "--allow-empty")
        head = git(place, "rev-parse", "HEAD")
        shutil.rmtree(place)
        finding = shop.only(str(place))
        assert finding.severity is Severity.PROBLEM
        shop.mended(finding)
        assert git(place, "rev-parse", "HEAD") == head
        assert shop.findings() == []

    def test_what_was_kept_goes_when_it_is_merged(self, shop: Clinic, repo: Path) -> None:
        place = spawned(shop, repo)
        (place / "draft").write_text("half done")
        shop.ok("stop", "a")
        finding = shop.only(str(place))
        assert finding.severity is Severity.NOTE
        assert "1 untracked file" in finding.words
        (place / "draft").unlink()
        shop.mended(shop.only(str(place)))
        assert not os.path.lexists(place)
        assert shop.findings() == []
