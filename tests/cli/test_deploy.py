"""`mam deploy`: an ordered run that looks first, holds claims back, and goes on after a crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mam_core.operations import doctor
from mam_core.version import __version__
from tests.cli.conftest import Mam, environment, is_one_sentence
from tests.support.clinic import Terminal
from tests.support.patience import eventually

STEPS = ("pull", "verify", "upgrade", "restart", "monitor")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "APART_SEC", 0.01)


def noting(step: str) -> str:
    """A command that leaves a word in a file, as program and arguments."""
    return f"{step} = {json.dumps(['sh', '-c', 'echo $MAM_DEPLOY_STEP >> done'])}"


def settings(mam: Mam, **changed: str) -> None:
    lines = {step: noting(step) for step in STEPS} | changed
    (mam.folder / "mam.toml").write_text("\n".join(("[deploy]", *lines.values())) + "\n")


def failing(step: str, code: int = 3) -> str:
    script = f"print('it says no'); raise SystemExit({code})"
    return f"{step} = {json.dumps([sys.executable, '-c', script])}"


def done(mam: Mam) -> list[str]:
    path = mam.folder / "done"
    return path.read_text().split() if path.exists() else []


def pauses(mam: Mam) -> list[str]:
    path = mam.registry / ".gates"
    return [gate["why"] for gate in json.loads(path.read_text())["closed"]] if path.exists() else []


def start(mam: Mam, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mam_core.cli.main", *words],
        cwd=mam.folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_without_run_it_only_shows(mam: Mam) -> None:
    settings(mam)
    mam.register()
    before = sorted(path.name for path in mam.registry.iterdir())
    answer = mam.ok("deploy")
    assert "queued       1" in answer.out
    assert [line.split()[0] for line in answer.lines[-7:]] == ["audit", "decide", *STEPS]
    assert answer.err == "mam: nothing was changed: --run does it\n"
    assert done(mam) == []
    assert sorted(path.name for path in mam.registry.iterdir()) == before


def test_the_steps_come_in_order_and_each_once(mam: Mam) -> None:
    """N35"""
    settings(mam)
    answer = mam.ok("deploy", "--run")
    assert done(mam) == list(STEPS)
    assert answer.out.index("running") < len(answer.out), "the audit is shown first"
    assert "is over" in answer.err
    assert pauses(mam) == []
    mam.ok("deploy", "--run")
    assert done(mam) == [*STEPS, *STEPS], "a new one may follow one that is over"


def test_verify_says_which_code_runs(mam: Mam) -> None:
    """N36"""
    import mam_core

    settings(mam)
    err = mam.ok("deploy", "--run").err
    assert f"verify: mam {__version__} ({Path(mam_core.__file__).parent.parent})" in err


class TestOrder:
    def test_no_step_without_those_before_it(self, mam: Mam) -> None:
        """N35: AUDIT cannot be passed by."""
        settings(mam)
        for step in ("decide", "pull", "restart", "monitor"):
            answer = mam("deploy", "--run", "--step", step)
            assert answer.code == 1
            assert answer.err == f"mam: {step} is not the first step: begin with audit\n"
        mam.ok("deploy", "--run", "--step", "audit")
        answer = mam("deploy", "--run", "--step", "pull")
        assert answer.err.endswith("mam: pull is not next: decide comes first\n")
        assert done(mam) == []

    def test_step_by_step(self, mam: Mam) -> None:
        settings(mam)
        answers = [
            mam.ok("deploy", "--run", "--step", step) for step in ("audit", "decide", *STEPS)
        ]
        assert all("advice:" in answer.out for answer in answers), "every call begins with an audit"
        assert done(mam) == list(STEPS)
        assert "is over" in answers[-1].err

    def test_a_step_that_fails_stops_it_and_it_goes_on_from_there(self, mam: Mam) -> None:
        settings(mam, verify=failing("verify"))
        answer = mam("deploy", "--run")
        assert answer.code == 1
        assert "verify | it says no" in answer.err
        assert "ended with 3: it says no; --resume goes on from there" in answer.err
        assert done(mam) == ["pull"]
        assert len(pauses(mam)) == 1, "claims are still held back"
        again = mam("deploy", "--run")
        assert again.code == 1
        assert "stopped in verify: --resume goes on with it, --abandon ends it" in again.err
        settings(mam)
        mam.ok("deploy", "--run", "--resume")
        assert done(mam) == list(STEPS)
        assert pauses(mam) == []

    def test_one_that_is_given_up_opens_the_claims(self, mam: Mam) -> None:
        settings(mam, upgrade='upgrade = ["/no/such/program"]')
        assert "cannot run /no/such/program" in mam("deploy", "--run").err
        assert "given up before upgrade" in mam.ok("deploy", "--abandon").err
        assert pauses(mam) == []
        for words in (["--abandon"], ["--run", "--resume"]):
            answer = mam("deploy", *words)
            assert answer.code == 1
            assert is_one_sentence(answer.err)

    def test_a_killed_one_goes_on_and_repeats_only_the_step_it_was_in(self, mam: Mam) -> None:
        """By kill -9. As long as the step's own program lives, nobody runs a second one."""
        script = "echo $$ > pid; echo upgrade >> done; exec sleep 600"
        settings(mam, upgrade=f"upgrade = {json.dumps(['sh', '-c', script])}")
        process = start(mam, "deploy", "--run")
        eventually(lambda: done(mam)[-1:] == ["upgrade"], "it upgrades")
        process.kill()
        process.communicate()
        refused = mam("deploy", "--run", "--resume")
        assert (refused.code, refused.err) == (1, "mam: another deploy is under way here\n")
        os.kill(int((mam.folder / "pid").read_text()), signal.SIGKILL)
        state = mam.registry / ".deploy.json"
        assert state.stat().st_mode & 0o777 == 0o600
        assert json.loads(state.read_text())["begun"] == "upgrade"
        settings(mam)
        eventually(lambda: mam("deploy", "--run", "--resume").code == 0, "it goes on")
        assert done(mam) == ["pull", "verify", "upgrade", "upgrade", "restart", "monitor"]

    def test_a_state_that_nobody_can_read_is_named(self, mam: Mam) -> None:
        settings(mam)
        mam.register()
        for text in ("{", "[]", '{"done": ["dance"]}'):
            (mam.registry / ".deploy.json").write_text(text)
            answer = mam("deploy", "--run")
            assert answer.code == 1
            assert ".deploy.json cannot be read" in answer.err
            assert is_one_sentence(answer.err)
        assert done(mam) == []


class TestJobsThatRun:
    @pytest.fixture
    def running(self, mam: Mam) -> str:
        settings(mam)
        job_id = mam.register()
        mam.ok("pick", "--label", "tmux:a")
        return job_id

    def test_without_a_word_about_them_it_is_refused(self, mam: Mam, running: str) -> None:
        """N14: shown first, then asked; where nobody can be asked, nothing is done."""
        answer = mam("deploy", "--run")
        assert answer.code == 1
        assert "running      1" in answer.out
        assert "1 running (tmux:a 1): say --running wait, keep or cancel" in answer.err
        assert done(mam) == []
        assert pauses(mam) == []
        assert mam.record(running)["status"] == "running"
        mam.ok("deploy", "--run", "--running", "keep")  # nothing was done yet: simply again
        assert done(mam) == list(STEPS)

    def test_kept_ones_finish_with_the_old_code(self, mam: Mam, running: str) -> None:
        mam.ok("deploy", "--run", "--running", "keep")
        assert done(mam) == list(STEPS)
        assert mam.record(running)["status"] == "running"

    def test_cancelled_ones_are_over_before_the_pull(self, mam: Mam, running: str) -> None:
        mam.ok("deploy", "--run", "--running", "cancel")
        assert mam.record(running)["status"] == "cancelled"

    def test_waiting_lasts_until_they_are_over_and_nothing_new_begins(
        self, mam: Mam, running: str
    ) -> None:
        waiting = mam.register("another")
        process = start(mam, "deploy", "--run", "--running", "wait")
        eventually(lambda: pauses(mam), "claims are held back")
        assert mam("pick", "--label", "tmux:a").code == 3
        assert done(mam) == []
        mam.ok("status", running, "--set", "completed")
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert "waiting for 1 running" in err
        assert done(mam) == list(STEPS)
        assert mam.ok("pick", "--label", "tmux:a").out.strip() == waiting

    def test_at_a_terminal_it_asks(self, mam: Mam, running: str) -> None:
        person = Terminal("deploy", "--run", cwd=mam.folder)
        person.answer("1 running (tmux:a 1): wait until they are over? [y/N]", "n")
        person.answer("or let them finish with the old code? [y/N]", "y")
        assert person.code() == 0
        assert done(mam) == list(STEPS)


def test_a_restart_is_a_fresh_attempt(mam: Mam) -> None:
    """N37"""
    settings(mam)
    job_id = mam.register()
    mam.ok("pick", "--label", "tmux:a")
    mam.ok("status", job_id, "--set", "error")
    mam.ok("deploy", "--run", "--retry-failed")
    record = mam.record(job_id)
    assert (record["status"], record["attempt"]) == ("pending", 1)
    assert mam.ok("pick", "--label", "tmux:a").out.strip() == job_id
    assert mam.record(job_id)["attempt"] == 2


def test_more_failures_than_before_stop_it(mam: Mam) -> None:
    """N38: monitored by group."""
    script = (
        "import subprocess, sys\n"
        "mam = [sys.executable, '-m', 'mam_core.cli.main']\n"
        "job = subprocess.run([*mam, 'register', '--prompt', 'p', '--agent', 'a', '--label', 'l',"
        " '--group', 'g'], capture_output=True, text=True, check=True).stdout.strip()\n"
        "subprocess.run([*mam, 'status', job, '--set', 'error'], check=True)\n"
    )
    restart = f"restart = {json.dumps([sys.executable, '-c', script])}"
    settings(mam, restart=restart, group='group = "g"')
    mam.ok("status", mam.register("of another group"), "--set", "error")
    answer = mam("deploy", "--run")
    assert answer.code == 1
    counts = "group g: running 0, queued 0, blocked 0, failed 1"
    assert f"{counts}: more have failed than before (0)" in answer.err


def test_what_is_out_of_order_is_mended_first_or_said_to_be_known(mam: Mam) -> None:
    settings(mam)
    mam.register()
    broken = mam.registry / "broken01.json"
    broken.write_text("{")
    broken.chmod(0o600)
    answer = mam("deploy", "--run")
    assert answer.code == 1
    assert "1 of the above is out of order" in answer.err
    assert done(mam) == []
    mam.ok("deploy", "--run", "--despite")
    assert done(mam) == list(STEPS)


def test_a_pause_of_somebody_else_stays(mam: Mam) -> None:
    settings(mam)
    mam.register()
    mam.ok("pause", "--all", "--why", "night")
    mam.ok("deploy", "--run")
    assert pauses(mam) == ["night"]


def test_what_a_command_prints_does_no_harm(mam: Mam) -> None:
    script = r"print('\033]0;owned\007')"
    settings(mam, pull=f"pull = {json.dumps([sys.executable, '-c', script])}")
    answer = mam.ok("deploy", "--run")
    assert "\x1b" not in answer.out + answer.err


@pytest.mark.parametrize(
    "words",
    [
        ["--resume"],
        ["--step", "audit"],
        ["--running", "keep"],
        ["--abandon", "--run"],
        ["--run", "--resume", "--step", "pull"],
    ],
)
def test_wrong_usage(mam: Mam, words: list[str]) -> None:
    answer = mam("deploy", *words)
    assert answer.code == 2
    assert is_one_sentence(answer.err)


def test_for_programs(mam: Mam) -> None:
    settings(mam)
    told = mam.ok("deploy", "--json").json
    assert told["unfinished"] is None
    assert told["audit"]["case"] == "go"
    assert told["commands"]["pull"][0] == "sh"
    told = mam.ok("deploy", "--run", "--json").json
    assert told["done"] == ["audit", "decide", *STEPS]
