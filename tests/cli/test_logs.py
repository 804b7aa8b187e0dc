"""``mam logs``: the history of a job, and the list of histories."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Mam, is_one_sentence, with_names
from tests.support.clock import FakeClock


def log_of(mam: Mam, job_id: str) -> Path:
    return mam.folder / ".mam" / "delegate_job_logs" / job_id / "events.ndjson"


def test_golden_timeline(mam: Mam, frozen: FakeClock) -> None:
    """E9, F7"""
    job_id = mam.register("p", "--priority", "1")
    mam.ok("edit", job_id, "--priority", "2")
    frozen.pass_time(1.5)
    mam.ok("pick", "--label", "tmux:a")
    mam.ok("heartbeat", job_id, "--owner", "w1")
    mam.ok("cancel", job_id, "--why", "too \x1b[2J slow\nreally")
    frozen.pass_time(60)
    mam.ok("status", job_id, "--set", "error")
    mam.ok("retry", job_id)
    with log_of(mam, job_id).open("a") as log:
        carried = {"event": "progress", "seq": 4, "detail": "half\u202e"}
        line = {"n": 8, "timestamp": "2026-06-19T09:31:02.000Z", "event": "published"}
        log.write(json.dumps({**line, "job_id": job_id, "payload": carried}) + "\n")
    answer = mam.ok("logs", job_id)
    assert answer.err == ""
    assert with_names(answer.out, job_id) == (
        "2026-06-19T09:30:00.000Z  registered             by ann\n"
        "2026-06-19T09:30:00.000Z  edited                 changed priority, by ann\n"
        "2026-06-19T09:30:01.500Z  status_changed    #1   pending → running (claim), by ann\n"
        "2026-06-19T09:30:01.500Z  leased            #1   owner=w1, by ann\n"
        "2026-06-19T09:30:01.500Z  cancel_requested  #1   why=too \\x1b[2J slow really, by ann\n"
        "2026-06-19T09:31:01.500Z  status_changed    #1   "
        "running → error (override): override, by ann\n"
        "2026-06-19T09:31:01.500Z  status_changed    #1   error → pending (retry), by ann\n"
        "2026-06-19T09:31:02.000Z  published              progress seq 4: half\\u202e\n"
    )


def test_what_is_made_of_parts_is_told_in_words(mam: Mam) -> None:
    """F7: lines of the worker hold tables and lists, and a person is no Python."""
    job_id = mam.register("p")
    ended = {
        "event": "attempt_ended",
        "attempt": 1,
        "tokens": {"input": 20, "output": 3},
        "git": {"commit": None, "dirty": True},
        "checks": [
            {"what": "a.txt", "passed": False, "words": "artifact a.txt is\x1b[2J missing"},
            {"what": "b", "passed": True},
        ],
        "notes": [],
        "names": ["x", "y"],
        "killed": 0,
        "late": False,
    }
    line = {"n": 2, "timestamp": "2026-06-19T09:31:02.000Z", "job_id": job_id, **ended}
    with log_of(mam, job_id).open("a") as log:
        log.write(json.dumps(line) + "\n")
    assert mam.ok("logs", job_id, "--tail", "1").out == (
        "2026-06-19T09:31:02.000Z  attempt_ended     #1   "
        "tokens=(input=20 output=3) git=(dirty=yes) "
        "checks=[(artifact a.txt is\\x1b[2J missing), (what=b passed=yes)] "
        "names=[x, y] killed=0 late=no\n"
    )
    assert json.loads(mam.ok("logs", job_id, "--tail", "1", "--json").out) == line


@pytest.fixture
def long(mam: Mam) -> str:
    """A job with thirty events."""
    job_id = mam.register("p")
    for n in range(29):
        mam.ok("status", job_id, "--set", ["running", "pending"][n % 2])
    return job_id


def test_tail_gives_the_last_events(mam: Mam, long: str) -> None:
    """E10"""
    everything = mam.ok("logs", long).lines
    assert len(everything) == 30
    assert mam.ok("logs", long, "--tail", "20").lines == everything[-20:]
    assert mam.ok("logs", long, "--tail", "99").lines == everything


def test_json_is_the_log_as_it_is_stored(mam: Mam, long: str) -> None:
    """E11"""
    stored = log_of(mam, long).read_text()
    assert mam.ok("logs", "--job", long, "--json").out == stored
    tail = mam.ok("logs", long, "--json", "--tail", "3").out
    assert tail == "".join(stored.splitlines(keepends=True)[-3:])


def test_json_on_a_terminal_is_harmless_and_means_the_same(
    mam: Mam, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = mam.register("p")
    mam.ok("cancel", job_id, "--why", "\u202e \x9b2J 별")
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True, raising=False)
    shown = mam.ok("logs", job_id, "--json")
    assert "\u202e" not in shown.out
    assert "\x9b" not in shown.out
    assert "별" in shown.out
    stored = log_of(mam, job_id).read_text().split("\n")[:-1]
    assert [json.loads(line) for line in shown.lines] == [json.loads(line) for line in stored]


def test_a_torn_or_foreign_line_is_skipped(mam: Mam) -> None:
    """F18"""
    job_id = mam.register("p")
    with log_of(mam, job_id).open("ab") as log:
        log.write(b'\xff\n[1]\n"x"\n{}\n{"event": 3, "attempt": [], "by": {"a": 1}}\n{"n": 2, "eve')
    answer = mam.ok("logs", job_id)
    assert answer.lines[0].split()[1] == "registered"
    assert len(answer.lines) == 3


def test_of_an_unknown_job_exits_1(mam: Mam) -> None:
    """E13"""
    for words in (["nobody99"], ["nobody99", "--json"], ["../x"], [""]):
        answer = mam("logs", *words)
        assert (answer.code, answer.out) == (1, "")
        assert is_one_sentence(answer.err)


def test_of_a_job_that_nobody_logged_is_empty(mam: Mam) -> None:
    mam.write("aaaa1111")
    answer = mam.ok("logs", "aaaa1111")
    assert answer.out == ""
    assert is_one_sentence(answer.err)


class TestTheListOfHistories:
    def test_shows_the_status_of_now(self, mam: Mam, frozen: FakeClock) -> None:
        """E12, F16"""
        one, two, three = mam.register("1"), mam.register("2"), mam.register("3")
        mam.ok("status", one, "--set", "completed")
        # A foreign tool writes the record and no history: what counts is the record.
        mam.write(two, status="running")
        mam.ok("status", three, "--set", "error")
        mam.path(three).unlink()
        rows = {line.split()[0]: line.split()[1:] for line in mam.ok("logs", "--list").lines}
        assert rows == {
            "JOB": ["ID", "STATUS", "RECORD", "CHANGED"],
            one: ["completed", "here", "0s", "ago"],
            two: ["running", "here", "30m", "ago"],
            three: ["error", "gone", "0s", "ago"],
        }
        data = {row["job_id"]: row for row in mam.ok("logs", "--list", "--json").json}
        assert data[three]["status"] == "error"
        assert data[three]["in_registry"] is False
        assert data[two]["status"] == "running"

    def test_outlives_the_registry(self, mam: Mam) -> None:
        """F16"""
        job_id = mam.register()
        shutil.rmtree(mam.registry)
        assert mam.ok("logs", "--list").lines[1].split()[:3] == [job_id, "pending", "gone"]
        assert len(mam.ok("logs", job_id).lines) == 1

    def test_marks_a_record_that_cannot_be_read(self, mam: Mam) -> None:
        job_id = mam.register()
        mam.path(job_id).write_text("{")
        assert mam.ok("logs", "--list").lines[1].split()[1] == "unreadable"

    def test_of_an_absent_registry_is_empty(self, mam: Mam) -> None:
        """E16"""
        assert len(mam.ok("logs", "--list").lines) == 1
        assert mam.ok("logs", "--list", "--json").json == []

    def test_takes_no_job(self, mam: Mam) -> None:
        assert mam("logs", "--list", "x").code == 2
        assert mam("logs").code == 2
        for count in ("0", "-1", "x"):
            assert mam("logs", "x", "--tail", count).code == 2
