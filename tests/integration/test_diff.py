"""`mam diff`: what an attempt changed, told from real jobs in real repositories."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.errors import JobNotFound
from mam_core.operations.diff import Diff, NoDiff, diff
from tests.support.patience import eventually
from tests.support.repositories import git, new_repository, private_git
from tests.support.watching import MAM
from tests.support.working import Workshop, workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    private_git(monkeypatch, tmp_path)
    with workshop(tmp_path) as made:
        new_repository(made.workdir)
        yield made
        made.until_nobody_lives()


COMMIT = "git -c user.name=ann -c user.email=a@b -c commit.gpgsign=false commit -q"


def ran(shop: Workshop, script: str, name: str = "script") -> str:
    return shop.run(shop.agent(name, "/bin/sh", "-c", script)).job_id


def of(shop: Workshop, job_id: str, attempt: int | None = None) -> Diff:
    return diff(shop.registry, job_id, attempt)


def test_what_was_there_before_is_not_what_the_attempt_did(shop: Workshop) -> None:
    (shop.workdir / "a.txt").write_text("edited by a person\n")
    (shop.workdir / "mine").write_text("not tracked\n")
    job_id = ran(shop, "echo more >>mine; echo new >made; printf '\\0\\1' >blob")
    found = of(shop, job_id)
    assert [(file.path, file.additions, file.deletions) for file in found.files] == [
        ("blob", None, None),
        ("made", 1, 0),
        ("mine", 1, 0),
    ]
    assert (found.additions, found.deletions, found.commits, found.notes) == (2, 0, (), ())
    assert b"+more" in found.text
    assert b"edited by a person" not in found.text


def test_commits_and_what_was_left_uncommitted_are_both_shown(shop: Workshop) -> None:
    moved = f"git mv a.txt b.txt; {COMMIT} -m moved"
    script = f"{moved}; echo two >c; git add c; {COMMIT} -m 'a: b'; echo x >d"
    found = of(shop, ran(shop, script))
    assert [commit.subject for commit in found.commits] == ["a: b", "moved"]
    assert {(file.old_path, file.path) for file in found.files} == {
        ("a.txt", "b.txt"),
        (None, "c"),
        (None, "d"),
    }
    assert found.notes == ()


def test_an_attempt_stays_as_it_was_when_the_folder_goes_on(shop: Workshop) -> None:
    first = ran(shop, "echo 1 >one", "first")
    second = ran(shop, f"echo 2 >two; git add .; {COMMIT} -m all", "second")
    assert [file.path for file in of(shop, first).files] == ["one"]
    assert [file.path for file in of(shop, second).files] == ["two"]


def test_each_attempt_has_its_own(shop: Workshop) -> None:
    agent = shop.agent("tries", "/bin/sh", "-c", 'touch "try-$MAM_ATTEMPT"; exit 1')
    job_id = shop.run(agent).job_id
    shop.registry.retry(job_id)
    shop.drain()
    assert [file.path for file in of(shop, job_id, 1).files] == ["try-1"]
    assert [file.path for file in of(shop, job_id).files] == ["try-2"]
    with pytest.raises(NoDiff, match=r"was not started as attempt 3: there is 1, 2$"):
        of(shop, job_id, 3)


def test_while_it_runs_the_folder_as_it_stands_is_shown(shop: Workshop) -> None:
    waits = "echo 1 >one; while [ ! -e go ]; do sleep 0.05; done"
    job_id = shop.add(shop.agent("waits", "/bin/sh", "-c", waits))
    with shop.at_work():
        eventually(lambda: (shop.workdir / "one").exists(), "it works")
        found = of(shop, job_id)
        assert found.until_now
        assert [file.path for file in found.files] == ["one"]
        (shop.workdir / "go").touch()
        eventually(lambda: not shop.job(job_id).is_live, "it has ended")
    assert not of(shop, job_id).until_now


def test_who_else_worked_there_meanwhile_is_said(shop: Workshop) -> None:
    meet = "touch $MAM_JOB_ID.here; while [ $(ls *.here | wc -l) -lt 2 ]; do sleep 0.02; done"
    agent = shop.agent("meets", "/bin/sh", "-c", meet)
    ids = [shop.add(agent, timeout_sec=60) for _ in range(2)]
    shop.drain(slots=2)
    for one, other in (ids, ids[::-1]):
        (note,) = of(shop, one).notes
        assert note == (
            "somebody else worked in this repository meanwhile, and is in it, too: "
            f"{other} (attempt 1)"
        )


def test_history_that_was_rewritten_is_said(shop: Workshop) -> None:
    found = of(shop, ran(shop, f"{COMMIT} --amend -m again"))
    assert [commit.subject for commit in found.commits] == ["again"]
    assert "rewrote history" in found.notes[0]


def test_a_repository_without_a_commit_is_compared_with_nothing(shop: Workshop) -> None:
    empty = shop.folder / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    agent = shop.agent("script", "/bin/sh", "-c", "echo 1 >one")
    found = of(shop, shop.run(agent, workdir=str(empty)).job_id)
    assert [file.path for file in found.files] == ["one"]


def test_what_is_not_known_is_one_sentence(shop: Workshop) -> None:
    agent = shop.agent("script", "/bin/sh", "-c", "true")
    with pytest.raises(JobNotFound):
        of(shop, "nobody")
    with pytest.raises(NoDiff, match="no worker has started job"):
        of(shop, waiting := shop.add(agent))
    shop.registry.request_cancel(waiting)
    plain = shop.folder / "plain"
    plain.mkdir()
    with pytest.raises(NoDiff, match="in no git repository"):
        of(shop, shop.run(agent, workdir=str(plain)).job_id)
    tree = shop.folder / "tree"
    git(shop.workdir, "worktree", "add", "-q", str(tree))
    gone = shop.run(agent, workdir=str(tree)).job_id
    git(shop.workdir, "worktree", "remove", str(tree))
    with pytest.raises(NoDiff, match="is gone"):
        of(shop, gone)


class TestTheCommand:
    @pytest.fixture
    def job_id(self, shop: Workshop) -> str:
        script = f"printf 'raw \\033[31m\\r\\n' >evil; git add .; {COMMIT} -m 'red \\033[0m'"
        return ran(shop, script)

    def mam(self, shop: Workshop, *words: str) -> subprocess.CompletedProcess[bytes]:
        command = [*MAM, "--registry-dir", str(shop.path), *words]
        return subprocess.run(command, capture_output=True, check=False, timeout=60)

    def test_writes_a_patch_into_a_pipe_byte_by_byte(self, shop: Workshop, job_id: str) -> None:
        done = self.mam(shop, "diff", job_id)
        assert done.returncode == 0
        assert b"+raw \x1b[31m\r\n" in done.stdout
        assert done.stderr.startswith(b"mam: commit ")
        again = new_repository(shop.folder / "again")
        subprocess.run(["git", "-C", str(again), "apply"], input=done.stdout, check=True)
        assert (again / "evil").read_bytes() == (shop.workdir / "evil").read_bytes()

    def test_shows_a_terminal_nothing_that_acts_on_it(self, shop: Workshop, job_id: str) -> None:
        ours, theirs = pty.openpty()
        command = [*MAM, "--registry-dir", str(shop.path), "diff", job_id]
        with subprocess.Popen(command, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            shown = b""
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:
                    break
                if not part:
                    break
                shown += part
            assert process.wait(60) == 0
        os.close(ours)
        assert b"\x1b" not in shown
        assert b"+raw \\x1b[31m" in shown

    def test_tells_programs_and_counts(self, shop: Workshop, job_id: str) -> None:
        told = json.loads(self.mam(shop, "diff", job_id, "--json").stdout)
        assert [file["path"] for file in told["files"]] == ["evil"]
        assert (told["additions"], told["deletions"], told["attempt"]) == (1, 0, 1)
        assert told["text"].startswith("diff --git a/evil b/evil")
        assert "text" not in json.loads(self.mam(shop, "diff", job_id, "--json", "--stat").stdout)
        lines = self.mam(shop, "diff", job_id, "--stat").stdout.decode().splitlines()
        assert lines[-2:] == [
            "evil  1  0",
            "1 file changed, 1 lines added, 0 deleted",
        ]

    def test_wrong_usage_is_a_sentence(self, shop: Workshop) -> None:
        done = self.mam(shop, "diff", "x", "--attempt", "0")
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"is no attempt" in done.stderr
