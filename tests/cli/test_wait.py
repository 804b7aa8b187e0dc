"""``mam wait``: until jobs have ended, told by their records alone."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.cli.conftest import Mam, is_one_sentence
from tests.support.rows import each_row

PATIENCE_SEC = 30


def test_ended_jobs_are_told_at_once(mam: Mam) -> None:
    good, bad = mam.register("one"), mam.register("two")
    mam.ok("status", good, "--set", "completed")
    mam.ok("status", bad, "--set", "error")
    answer = mam.ok("wait", good)
    assert (answer.out, answer.err) == (f"{good} completed\n", "")
    answer = mam("wait", good, "--job", bad)
    assert (answer.code, answer.out) == (1, f"{good} completed\n{bad} error\n")


def test_each_job_is_a_line_as_it_ends(mam: Mam) -> None:
    first, second = mam.register("one"), mam.register("two")
    with subprocess.Popen(
        [sys.executable, "-m", "mam_core.cli.main", "wait", first, second],
        cwd=mam.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            mam.ok("status", second, "--set", "completed")
            assert process.stdout.readline() == f"{second} completed\n"
            mam.ok("cancel", first)
            assert process.stdout.readline() == f"{first} cancelled\n"
            assert process.wait(PATIENCE_SEC) == 1
        finally:
            process.kill()
    assert not (mam.registry / ".outbox").exists()  # nothing was sent, nothing was started


def test_not_in_time_is_2(mam: Mam) -> None:
    """A job's own timeouts end nothing here."""
    job_id = mam.register("slow", "--timeout", "1", "--idle-timeout", "1")
    answer = mam("wait", job_id, "--timeout", "2")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"mam: job {job_id} timed out: it has not ended in 2 s\n"


@each_row(
    ("words", "code"),
    [([], 2), (["JOB", "--timeout", "0"], 2), (["JOB", "--timeout", "x"], 2)]
    + [([name], 1) for name in ("nobody99", "../x")]
    + [(["JOB", "nobody99"], 1)],
)
def test_mistakes_are_one_sentence(mam: Mam, words: list[str], code: int) -> None:
    job_id = mam.register()
    answer = mam("wait", *(job_id if word == "JOB" else word for word in words))
    assert (answer.code, answer.out) == (code, "")
    assert is_one_sentence(answer.err)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_it_is_quiet(mam: Mam, number: signal.Signals, code: int) -> None:
    over, job_id = mam.register("one"), mam.register("two")
    mam.ok("status", over, "--set", "completed")
    with subprocess.Popen(
        [sys.executable, "-m", "mam_core.cli.main", "wait", over, job_id],
        cwd=mam.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline() == f"{over} completed\n"
            process.send_signal(number)
            assert process.wait(PATIENCE_SEC) == code
            assert process.stderr.read() == ""
        finally:
            process.kill()
