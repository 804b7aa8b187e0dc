"""`mam verify`: what `completed` is earned by, looked at again; nothing changes by looking."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Mam, is_one_sentence
from tests.support.patience import eventually
from tests.support.supervision import with_word


@pytest.fixture
def job_id(mam: Mam) -> str:
    """A job that promises a file and a passing check, and was picked."""
    made = mam.register(
        "write",
        *("--artifact", "out.txt", "--validate", "echo looked; grep -q stars out.txt"),
    )
    mam.ok("pick", "--label", "tmux:a")
    return made


def ended(mam: Mam, job_id: str, status: str = "completed") -> bytes:
    mam.ok("status", job_id, "--set", status)
    return mam.path(job_id).read_bytes()


def test_each_check_is_a_line(mam: Mam, job_id: str) -> None:
    """J1, J3, J4"""
    (mam.folder / "out.txt").write_text("7 stars")
    before = ended(mam, job_id)
    answer = mam.ok("verify", job_id)
    assert answer.lines == [
        f"ok      {job_id}  artifact out.txt is there",
        f"ok      {job_id}  the validate command passed",
    ]
    assert answer.err == f"mam: job {job_id} keeps what it promised\n"
    assert mam.path(job_id).read_bytes() == before


def test_what_is_missing_is_named(mam: Mam, job_id: str) -> None:
    """J4, decision 7"""
    before = ended(mam, job_id)
    answer = mam("verify", job_id)
    assert answer.code == 1
    assert answer.lines == [f"FAILED  {job_id}  artifact out.txt is missing"]
    assert "does not keep what it promised" in answer.err
    assert mam.path(job_id).read_bytes() == before, "history is not rewritten"


def test_a_failed_command_says_how(mam: Mam, job_id: str) -> None:
    (mam.folder / "out.txt").write_text("nothing")
    ended(mam, job_id)
    answer = mam("verify", job_id)
    assert answer.code == 1
    assert answer.lines[1] == f"FAILED  {job_id}  the validate command ended with 1: looked"


@pytest.mark.parametrize("status", ["pending", "running"])
def test_a_job_that_is_not_over_is_judged_as_it_stands(mam: Mam, job_id: str, status: str) -> None:
    mam.ok("status", job_id, "--set", status)
    (mam.folder / "out.txt").write_text("7 stars")
    answer = mam.ok("verify", job_id)
    assert f"is {status} and was judged as it stands: keeps what it promised" in answer.err
    assert mam.record(job_id)["status"] == status


def test_an_error_stays_one(mam: Mam, job_id: str) -> None:
    (mam.folder / "out.txt").write_text("7 stars")
    ended(mam, job_id, "error")
    assert "keeps what it promised, and stays error" in mam.ok("verify", job_id).err
    assert mam.record(job_id)["status"] == "error"


def test_a_job_that_promised_nothing(mam: Mam) -> None:
    job_id = mam.register()
    answer = mam.ok("verify", job_id)
    assert answer.out == ""
    assert "promises nothing" in answer.err


def test_it_is_in_the_history(mam: Mam, job_id: str) -> None:
    """J3"""
    ended(mam, job_id)
    mam("verify", job_id)
    log = mam.folder / ".mam" / "delegate_job_logs" / job_id / "events.ndjson"
    line = json.loads(log.read_text().splitlines()[-1])
    assert (line["event"], line["passed"], line["attempt"]) == ("verified", False, 1)
    assert line["by"] == "ann"
    assert [check["what"] for check in line["checks"]] == ["out.txt"]
    assert "verified" in mam.ok("logs", job_id).out


def test_for_programs(mam: Mam, job_id: str) -> None:
    (mam.folder / "out.txt").write_text("7 stars")
    ended(mam, job_id)
    answer = mam("verify", "--json", job_id, "nobody99")
    assert answer.code == 1
    one, none = answer.json
    assert (one["ok"], one["status"]) == (True, "completed")
    assert [check["passed"] for check in one["checks"]] == [True, True]
    assert one["checks"][1]["output"] == "looked\n"
    assert (none["ok"], none["checks"]) == (False, [])


def test_many_jobs_one_refused(mam: Mam, job_id: str) -> None:
    (mam.folder / "out.txt").write_text("7 stars")
    answer = mam("verify", "nobody99", job_id)
    assert answer.code == 1
    assert len(answer.lines) == 2
    alone = mam("verify", "nobody99")
    assert (alone.code, alone.out) == (1, "")
    assert is_one_sentence(alone.err)


def test_foreign_output_does_no_harm(mam: Mam) -> None:
    job_id = mam.register("x", "--validate", r"printf '\033]0;owned\007\n'; exit 3")
    answer = mam("verify", job_id)
    assert answer.code == 1
    assert "\x1b" not in answer.out + answer.err


def test_secrets_stay_in_the_record(mam: Mam) -> None:
    job_id = mam.register("x", "--token", "--validate", "cat .mam/jobs/*.json; exit 1")
    token = mam.record(job_id)["auth_token"]
    answer = mam("verify", "--json", job_id)
    assert token not in answer.out + answer.err
    log = mam.folder / ".mam" / "delegate_job_logs" / job_id / "events.ndjson"
    assert token not in log.read_text()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")
def test_whoever_has_had_enough_leaves_nothing_running(mam: Mam, folder: Path) -> None:
    """^C ends the check as well, which is in a session of its own."""
    word = f"3{os.getpid()}"
    job_id = mam.register("x", "--validate", f"exec sleep {word}")
    command = [sys.executable, "-m", "mam_core.cli.main", "verify", job_id]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    eventually(lambda: bool(with_word(f"sleep\0{word}\0")), "the check runs")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert not with_word(f"sleep\0{word}\0")
