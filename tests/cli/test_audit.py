"""`mam audit`: the mandatory first look, by the doctor's own checks."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from mam_core.operations import doctor
from mam_core.operations.audit_report import Advice, advice
from tests.cli.conftest import Mam


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "APART_SEC", 0.01)


def mixed(mam: Mam) -> dict[str, str]:
    """One running, two queued, one failed; of two labels and one group."""
    running = mam.register("run", "--group", "g")
    mam.ok("pick", "--label", "tmux:a")
    failed = mam.register("fail")
    mam.ok("status", failed, "--set", "error")
    queued = mam.register("wait", "--group", "g")
    mam.register("wait too", "--label", "tmux:b")
    return {"running": running, "failed": failed, "queued": queued}


def test_counts_and_labels_of_a_mixed_registry(mam: Mam) -> None:
    """N32"""
    jobs = mixed(mam)
    answer = mam("audit")
    assert answer.code == 1, "a job has failed"
    assert answer.lines[1].split() == ["running", "1", "tmux:a", "1"]
    assert answer.lines[2] == "queued       2  tmux:a 1, tmux:b 1  (nobody serves 2)"
    assert answer.lines[3].split() == ["blocked", "0"]
    assert answer.lines[4].split()[:4] == ["failed", "1", "tmux:a", "1"]
    assert any(line.startswith(jobs["running"]) for line in answer.lines)
    assert answer.lines[-1].startswith("advice: jobs run and others have failed")


def test_for_programs_and_by_group(mam: Mam) -> None:
    """N38: what is watched is named by group or label, never by a number that moves."""
    jobs = mixed(mam)
    told = mam("audit", "--json", "--group", "g").json
    assert told["counts"] == {
        "pending": 1,
        "running": 1,
        "completed": 0,
        "error": 0,
        "cancelled": 0,
    }
    assert [job["job_id"] for job in told["running"]] == [jobs["running"]]
    assert (told["case"], told["ok"], told["failed"]) == ("wait", True, [])
    assert {"temp files", "artifacts of completed jobs"} <= {
        one["check"] for one in told["findings"]
    }
    other = mam("audit", "--json", "--label", "tmux:b").json
    assert other["queued_labels"] == {"tmux:b": 1}


def test_what_is_blocked_is_not_counted_as_queued(mam: Mam) -> None:
    first = mam.register("first")
    mam.register("second", "--after", first, "--label", "tmux:b")
    mam.register("later", "--not-before", "+1h")
    answer = mam.ok("audit")
    assert answer.lines[2].split()[:4] == ["queued", "1", "tmux:a", "1"]
    assert answer.lines[3].split() == ["blocked", "2", "tmux:a", "1,", "tmux:b", "1"]
    told = mam.ok("audit", "--json").json
    assert told["counts"]["pending"] == 3
    assert told["queued_labels"] == {"tmux:a": 2, "tmux:b": 1}
    assert told["queued"] == {"count": 1, "labels": {"tmux:a": 1}}
    assert told["blocked"] == {"count": 2, "labels": {"tmux:a": 1, "tmux:b": 1}, "cannot_run": 0}
    only = mam.ok("audit", "--json", "--label", "tmux:b").json
    assert (only["queued"]["count"], only["blocked"]["count"]) == (0, 1)


def test_the_advice_says_that_nothing_of_what_is_pending_can_start(mam: Mam) -> None:
    """Nothing runs and nothing has failed, and yet nothing would ever run."""
    first = mam.register("first")
    mam.register("second", "--after", first)
    answer = mam.ok("audit")
    assert answer.lines[-1] == (
        f"advice: {Advice.GO}; none of the 2 pending jobs can start now: 1 blocked, "
        "1 that nobody serves (`mam why ID` says what helps)"
    )
    told = mam.ok("audit", "--json").json
    assert told["case"] == "go"
    assert told["advice"] == answer.lines[-1].removeprefix("advice: ")
    assert told["unserved"] == {"count": 1, "labels": {"tmux:a": 1}}
    mam.ok("cancel", first)
    mam.ok("pause", "--all")
    answer = mam("audit")
    assert answer.code == 1, "a job that can never run is out of order"
    assert answer.lines[3].endswith("tmux:a 1  (1 cannot run)")
    assert answer.lines[-1] == (
        f"advice: {Advice.GO}; but first mend what is out of order (1 finding); the pending job "
        "cannot start now: 1 blocked (`mam why ID` says what helps)"
    )


def test_no_job_that_can_start_is_mentioned_in_the_advice(mam: Mam) -> None:
    """A label that its own command serves: nobody has to look."""
    mam.register("own", "--label", "submit:1")
    assert mam.ok("audit").lines[-1] == f"advice: {Advice.GO}"
    mam.register("other", "--label", "submit:1", "--not-before", "+1h")
    assert mam.ok("audit").lines[-1] == (
        f"advice: {Advice.GO}; 1 of 2 pending jobs cannot start now: 1 blocked "
        "(`mam why ID` says what helps)"
    )


def test_what_is_blocked_is_known_where_the_sessions_cannot_be_read(mam: Mam) -> None:
    mam.register("later", "--not-before", "+1h")
    (mam.registry / ".sessions").write_text("")
    answer = mam("audit")
    assert answer.code == 1
    assert answer.lines[3].split() == ["blocked", "1", "tmux:a", "1"]
    assert "could not be looked at" in answer.out


@pytest.mark.parametrize(
    ("running", "failed", "case"),
    [
        (0, 0, Advice.GO),
        (2, 0, Advice.WAIT),
        (0, 3, Advice.RETRY),
        (2, 3, Advice.LOOK),
    ],
)
def test_four_cases_four_advices(mam: Mam, running: int, failed: int, case: Advice) -> None:
    """N34"""
    assert advice(running, failed) is case
    for number in range(running):
        mam.register(f"run {number}")
        mam.ok("pick", "--label", "tmux:a")
    for number in range(failed):
        mam.ok("status", mam.register(f"fail {number}"), "--set", "error")
    answer = mam("audit")
    assert answer.lines[-1] == f"advice: {case}"
    assert answer.code == (1 if failed else 0)


def test_nothing_wrong_is_exit_code_0_also_without_a_registry(mam: Mam) -> None:
    answer = mam.ok("audit")
    assert not mam.registry.exists(), "looking makes nothing"
    assert "running      0" in answer.out


def test_stale_temp_files_dead_jobs_and_lost_sessions_are_found(mam: Mam) -> None:
    """N33: each is seeded; what finds them is the doctor."""
    dead = mam.write(
        "deadjob1",
        status="running",
        attempt=1,
        started_at="2026-01-01T00:00:00Z",
        timeout_sec=60,
    )
    temp = mam.registry / ".deadjob1.0a.tmp"
    temp.write_text("{")
    os.utime(temp, (time.time() - 7200,) * 2)
    sessions = mam.registry / ".sessions"
    sessions.mkdir(mode=0o700)
    (sessions / "gone.json").write_text("{")
    answer = mam("audit")
    assert answer.code == 1
    for words in ("job deadjob1 attempt 1: nobody supervises it", "temp files: 1", "session gone"):
        assert words in answer.out, answer.out
    assert dead.exists()
    assert temp.exists(), "an audit changes nothing"


def test_artifacts_that_are_gone_are_named(mam: Mam) -> None:
    out = mam.folder / "out.txt"
    out.write_text("7 stars")
    kept, lost = (
        mam.register(f"write {name}", "--artifact", name, "--allow-collision")
        for name in ("out.txt", "gone.txt")
    )
    for job_id in (kept, lost):
        mam.ok("status", job_id, "--set", "completed")
    answer = mam("audit")
    assert answer.code == 1
    assert f"job {lost}: completed, and of what it left gone.txt is gone" in answer.out
    assert kept not in answer.out


def test_a_registry_that_has_grown_large_is_told(mam: Mam, monkeypatch: pytest.MonkeyPatch) -> None:
    """N23: past 50 MB"""
    mam.register("x" * 1000)
    assert mam("audit").code == 0
    monkeypatch.setattr("mam_core.doctor.place._MANY", 500)
    answer = mam("audit")
    assert "records: the records are" in answer.out
    assert "`mam clean --older-than 7d`" in answer.out


class TestOwnAudits:
    """N48: what the project asks beyond that."""

    def ask(self, mam: Mam, *lines: str) -> None:
        (mam.folder / "mam.toml").write_text("\n".join(("[audits.rows]", *lines)))

    def command(self, script: str) -> str:
        return f"command = {json.dumps([sys.executable, '-c', script])}"

    def test_one_that_passes(self, mam: Mam) -> None:
        self.ask(mam, self.command("print('fine')"))
        told = mam.ok("audit", "--json").json
        (row,) = [one for one in told["findings"] if one["check"] == "audits"]
        assert (row["severity"], row["what"]) == ("ok", "audit rows")

    def test_one_that_fails_says_what_it_means_and_where_it_comes_from(self, mam: Mam) -> None:
        self.ask(
            mam,
            self.command("print('3 negative rows'); raise SystemExit(4)"),
            'meaning = "rows below zero"',
            'issue = "GH-84"',
        )
        answer = mam("audit")
        assert answer.code == 1
        assert "audit rows: rows below zero (GH-84): 3 negative rows" in answer.out

    def test_what_it_prints_does_no_harm(self, mam: Mam) -> None:
        self.ask(mam, self.command(r"print('\033]0;owned\007\u202e'); raise SystemExit(1)"))
        answer = mam("audit")
        assert "\x1b" not in answer.out
        assert "\u202e" not in answer.out

    def test_one_that_hangs_is_ended(self, mam: Mam) -> None:
        self.ask(mam, self.command("import time; time.sleep(600)"), "timeout_sec = 0.3")
        assert "audit rows: it did not end in time" in mam("audit").out

    def test_one_that_is_not_there(self, mam: Mam) -> None:
        self.ask(mam, 'command = ["/no/such/program"]')
        assert "audit rows: it cannot be run: /no/such/program: no such file" in mam("audit").out

    def test_it_runs_beside_its_settings_and_not_as_an_agent(
        self, mam: Mam, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("MAM_JOB_ID", "x")
        script = (
            "import os; raise SystemExit("
            "os.path.exists('mam.toml') and 'MAM_JOB_ID' not in os.environ)"
        )
        self.ask(mam, self.command(script))
        (mam.folder / "deep").mkdir()
        monkeypatch.chdir(mam.folder / "deep")
        assert "audit rows: it ended with 1" in mam("audit", "--registry-dir", mam.registry).out


def test_the_host_is_compared_with_the_rules(mam: Mam) -> None:
    """N48"""
    from mam_core.wiring import node_name

    (mam.folder / "mam.toml").write_text(
        f'[hosts."{node_name()}"]\ncores = 5000\nmemory = "900T"\nnote = "groups p1 to p4"\n'
    )
    answer = mam("audit")
    assert "it should have 5000 cores, and has" in answer.out
    assert "it should have 921600 GiB of memory" in answer.out
    assert "groups p1 to p4" in answer.out
