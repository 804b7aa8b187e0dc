"""`completed` is earned: what is looked at before a job may be called so (decision 7)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from mam_core.records import Job, Status
from mam_core.work import bounded_process
from mam_core.work.bounded_process import TAIL_BYTES
from mam_core.work.validation import Verdict, environment, judge
from tests.support.children import is_alive
from tests.support.patience import eventually

STARTED = 1_800_000_000


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def job(workdir: Path, *artifacts: str, **fields: Any) -> Job:
    return Job(
        "abc12345",
        Status.RUNNING,
        attempt=2,
        workdir=str(workdir),
        expected_artifacts=artifacts,
        started_at="2027-01-15T08:00:00Z",
        **{"timeout_sec": 30, **fields},
    )


def write(path: Path, text: str = "text", age: float = -1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (STARTED - age, STARTED - age))


class TestArtifacts:
    def test_one_that_is_there_and_new(self, workdir: Path) -> None:
        write(workdir / "a" / "out.md", age=0)
        verdict = judge(job(workdir, "a/out.md"))
        assert verdict.passed
        assert verdict.words == ""

    def test_one_with_the_time_of_the_tick_before(self, workdir: Path) -> None:
        """The clock of files is a few milliseconds behind the one that records are dated by."""
        write(workdir / "out.md", age=0.004)
        assert judge(job(workdir, "out.md")).passed

    def test_each_fault_has_its_sentence(self, workdir: Path, tmp_path: Path) -> None:
        """J4, J5."""
        write(workdir / "empty", "")
        write(workdir / "old", age=2)
        write(tmp_path / "outside")
        (workdir / "link").symlink_to(tmp_path / "outside")
        (workdir / "folder").mkdir()
        (workdir / "loop").symlink_to("loop")
        names = ("missing", "empty", "old", "../outside", "link", "folder")
        verdict = judge(job(workdir, *names, validate="touch ran"))
        assert [check.words for check in verdict.checks] == [
            "artifact missing is missing",
            "artifact empty is empty",
            "artifact old is older than the attempt",
            "artifact ../outside lies outside of the job's folder",
            "artifact link lies outside of the job's folder",
            "artifact folder is empty",
        ]
        assert not verdict.passed
        assert not (workdir / "ran").exists(), "the command was run although artifacts are missing"
        assert not judge(job(workdir, "loop")).passed

    def test_a_folder_is_as_new_as_what_is_in_it(self, workdir: Path) -> None:
        write(workdir / "site" / "index.html", age=100)
        os.utime(workdir / "site", (STARTED - 50, STARTED - 50))
        assert "older" in judge(job(workdir, "site")).words
        write(workdir / "site" / "new.html")
        assert judge(job(workdir, "site")).passed

    def test_a_job_that_nobody_claimed_began_when_it_was_registered(self, workdir: Path) -> None:
        write(workdir / "out", age=10)
        waiting = job(workdir, "out").evolve(
            status=Status.PENDING,
            attempt=0,
            started_at=None,
            created_at="2027-01-15T07:59:45Z",
            updated_at="2027-01-15T08:00:00Z",
        )
        assert judge(waiting).passed
        assert "older" in judge(waiting.evolve(attempt=1)).words, "what a former attempt left"

    def test_what_it_says_tells_nobody_where_its_user_lives(self, workdir: Path) -> None:
        """G23."""
        gone = job(workdir / "gone", validate="true")
        assert judge(gone).words == (
            "the validate command cannot be run in .: no such file or directory"
        )


class TestTheCommand:
    def test_exit_0_passes_and_its_words_are_kept(self, workdir: Path) -> None:
        """J3."""
        verdict = judge(job(workdir, validate="echo out; echo err >&2"))
        assert verdict.passed
        assert verdict.to_list() == [
            {
                "what": "echo out; echo err >&2",
                "passed": True,
                "words": "the validate command passed",
                "output": "out\nerr\n",
            }
        ]

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("echo oh; echo no; exit 3", "the validate command ended with 3: no"),
            ("exit 1", "the validate command ended with 1"),
            ("kill -9 $$", "the validate command was ended by SIGKILL"),
            ("no-such-program", "the validate command ended with 127"),
        ],
    )
    def test_anything_else_fails(self, workdir: Path, line: str, words: str) -> None:
        verdict = judge(job(workdir, validate=line))
        assert verdict.words.startswith(words)

    def test_it_knows_its_job(self, workdir: Path, tmp_path: Path) -> None:
        """J2, decision 29."""
        write(workdir / "a b")
        write(workdir / "c")
        promised = job(workdir, "a b", "c", validate="env | grep -A1 ^MAM_; pwd -P")
        registry = str(tmp_path / "jobs")
        output = judge(promised, registry_path=registry).checks[-1].output
        for line in ("MAM_JOB_ID=abc12345", "MAM_ATTEMPT=2", "MAM_WORKDIR=.", "MAM_ARTIFACTS=a b"):
            assert line in output.splitlines()
        told = environment(promised, registry)
        assert told["MAM_ARTIFACTS"].splitlines() == ["a b", "c"]
        assert told["MAM_REGISTRY_DIR"] == registry
        assert told["DELEGATE_JOB_LOGS_DIR"] == str(tmp_path / "delegate_job_logs")
        assert output.endswith("\n.\n"), "it runs in the job's folder"

    def test_at_the_end_of_its_time_it_is_ended_with_all_it_started(
        self, workdir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _let_it_begin(monkeypatch, workdir / "child", 2)
        line = "trap '' TERM; sleep 600 & echo $! > child; yes > /dev/null & echo $! >> child; wait"
        verdict = judge(job(workdir, validate=line, timeout_sec=0.5))
        assert verdict.words == "the validate command did not end within 0.5 s"
        _all_gone(workdir / "child")

    def test_endless_words_do_not_outlast_its_time(
        self, workdir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _let_it_begin(monkeypatch, workdir / "child", 1)
        verdict = judge(job(workdir, validate="echo $$ > child; yes", timeout_sec=0.5))
        assert "did not end" in verdict.words
        assert len(verdict.checks[0].output) <= TAIL_BYTES
        _all_gone(workdir / "child")

    def test_the_end_of_much_output_is_kept(self, workdir: Path) -> None:
        output = judge(job(workdir, validate="seq 100000; echo last")).checks[0].output
        assert output.endswith("\n100000\nlast\n")
        assert len(output) == TAIL_BYTES

    def test_a_child_that_holds_the_pipe_open_holds_nobody_up(self, workdir: Path) -> None:
        verdict = judge(job(workdir, validate="sleep 600 & echo $! > child; echo done"))
        assert verdict.passed
        assert verdict.checks[0].output == "done\n"
        _all_gone(workdir / "child")

    def test_it_reads_nothing_from_our_terminal(self, workdir: Path) -> None:
        assert judge(job(workdir, validate='test -z "$(cat)"')).passed


def test_a_job_without_promises_has_kept_them(workdir: Path) -> None:
    assert judge(job(workdir)) == Verdict(())
    assert judge(job(workdir)).passed


def _let_it_begin(monkeypatch: pytest.MonkeyPatch, pids: Path, count: int) -> None:
    """Its time is over only after it has told of so many processes: a busy machine may need
    longer for that than its time."""
    listen = bounded_process._listen

    def after_that(process: Any, pipe: int, deadline: float) -> tuple[bytes, bool]:
        left = deadline - time.monotonic()
        eventually(lambda: pids.exists() and pids.read_text().count("\n") == count, "it has begun")
        return listen(process, pipe, time.monotonic() + left)

    monkeypatch.setattr(bounded_process, "_listen", after_that)


def _all_gone(pids: Path) -> None:
    started = [int(pid) for pid in pids.read_text().split()]
    eventually(lambda: not any(map(is_alive, started)), "all of them are gone")
