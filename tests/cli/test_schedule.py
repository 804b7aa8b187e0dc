"""`mam schedule`, and what long-lived commands do about it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mam_core.config import load
from mam_core.operations import schedule
from mam_core.operations.schedule import scheduling
from tests.cli.conftest import Mam, environment, is_one_sentence
from tests.support.clock import FakeClock
from tests.support.patience import eventually
from tests.support.rows import each_row

TEMPLATE = """
[templates.report]
prompt = "count the stars"
agent = "shell"
agent_session = "tmux:a"
"""
HOURLY = TEMPLATE + '[schedules.hourly]\nevery = "1h"\ntemplate = "report"\n'


def settings(mam: Mam, text: str = HOURLY) -> None:
    (mam.folder / "mam.toml").write_text(text)


def test_the_list_says_how_each_stands(mam: Mam, frozen: FakeClock) -> None:
    settings(mam, HOURLY + '[schedules.night]\ncron = "0 3 * * *"\ntemplate = "report"\n')
    answer = mam.ok("schedule", "list")
    assert answer.lines[0].split() == [
        *("NAME", "RULE", "TEMPLATE", "NEXT", "LAST", "JOB", "MISSED")
    ]
    assert "2026-06-19T10:00:00Z" in answer.lines[1]
    mam.ok("schedule", "run")
    frozen.pass_time(3 * 3600 + 900)
    answer = mam.ok("schedule", "list")
    assert "hourly missed 3, the last at 2026-06-19T12:00:00Z: nobody was there" in answer.err
    mam.ok("schedule", "pause", "hourly", "--why", "too dear")
    hourly, night = mam.ok("schedule", "list", "--json").json
    assert (hourly["paused"]["why"], hourly["next"], night["paused"]) == ("too dear", None, None)
    assert (
        mam.ok("schedule", "resume", "hourly").err == "mam: schedule hourly is on again, from now\n"
    )
    assert mam("schedule", "resume", "hourly").code == 1


def test_what_was_missed_is_one_sentence_however_much_it_is(mam: Mam, frozen: FakeClock) -> None:
    settings(mam, TEMPLATE + '[schedules.m]\nevery = "1m"\ntemplate = "report"\n')
    mam.ok("schedule", "run")
    frozen.pass_time(21 * 86400)
    answer = mam.ok("schedule", "run")
    assert answer.err.count("missed") == 1
    assert "schedule m missed 1000+, the last at 2026-07-10T09:29:00Z: nobody" in answer.err
    assert len(answer.lines) == 1, "one job, not thirty thousand"
    assert mam.ok("schedule", "list").lines[1].split()[-1] == "1000+"


def test_a_job_at_once_prints_its_id(mam: Mam) -> None:
    settings(mam)
    job_id = mam.ok("schedule", "run", "hourly").out.strip()
    record = mam.record(job_id)
    assert (record["prompt"], record["workdir"]) == ("count the stars", str(mam.folder))
    refused = mam("schedule", "run", "hourly")
    assert (refused.code, refused.out) == (1, "")
    assert f"job {job_id} is not over" in refused.err
    assert is_one_sentence(refused.err)


def test_nothing_is_due(mam: Mam) -> None:
    settings(mam)
    assert mam.ok("schedule", "run").err == "mam: nothing is due\n"
    (mam.folder / "mam.toml").write_text("")
    assert "there are no schedules" in mam.ok("schedule", "list").err


@each_row(
    ("text", "named"),
    [
        ('[schedules.x]\ntemplate = "report"\n', "schedules.x needs either every or cron"),
        (
            '[schedules.x]\nevery = "1h"\ncron = "* * * * *"\ntemplate = "report"\n',
            "schedules.x needs either every or cron",
        ),
        ('[schedules.x]\nevery = "1h"\n', "schedules.x names no template"),
        ('[schedules.x]\nevery = "1h"\ntemplate = "no"\n', "there is no such template"),
        ('[schedules.x]\nevery = "0.5s"\ntemplate = "report"\n', "whole seconds"),
        ('[schedules.x]\ncron = "61 * * * *"\ntemplate = "report"\n', "'61' is no minute"),
        ('[schedules.x]\ncron = "0 0 30 2 *"\ntemplate = "report"\n', "never comes"),
        (
            '[schedules.x]\ncron = "@daily"\ntimezone = "Mars"\ntemplate = "report"\n',
            "knows no time zone 'Mars'",
        ),
    ],
)
def test_a_mistake_names_file_line_and_key(mam: Mam, text: str, named: str) -> None:
    settings(mam, TEMPLATE + text)
    answer = mam("schedule", "list")
    assert answer.code == 1
    assert is_one_sentence(answer.err)
    assert named in answer.err
    assert "mam.toml, line " in answer.err


@pytest.mark.parametrize(
    "words", [["list", "hourly"], ["pause"], ["pause", "hourly", "--all"], ["list", "--all"]]
)
def test_wrong_usage(mam: Mam, words: list[str]) -> None:
    settings(mam)
    answer = mam("schedule", *words)
    assert answer.code == 2
    assert is_one_sentence(answer.err)


def test_a_schedule_that_there_is_not(mam: Mam) -> None:
    settings(mam)
    for act in ("run", "pause", "resume"):
        answer = mam("schedule", act, "nobody")
        assert (answer.code, answer.out) == (1, "")
        assert "there is no schedule 'nobody'; schedules: hourly" in answer.err
        assert "schedules: hourly. Did you mean hourly?" in mam("schedule", act, "hourli").err


EVERY_SECOND = TEMPLATE + '[schedules.tick]\nevery = "1s"\ntemplate = "report"\noverlap = true\n'
LIVES = """
import sys, time
from mam_core.config import load
from mam_core.operations.schedule import scheduling
with scheduling(sys.argv[1], load()):
    time.sleep(600)
"""


def test_long_lived_commands_run_them_and_a_kill_between_doubles_none(mam: Mam) -> None:
    """Two processes look at one clock; one is killed in the middle and another takes its place."""
    settings(mam, EVERY_SECOND)
    command = [sys.executable, "-c", LIVES, str(mam.registry)]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=mam.folder, env=environment())

    def moments() -> list[str]:
        if not mam.registry.is_dir():
            return []
        found = [json.loads(path.read_bytes())["key"] for path in mam.registry.glob("*.json")]
        return sorted(key.removeprefix("schedule:tick:") for key in found)

    processes = [start(), start()]
    try:
        eventually(lambda: len(moments()) >= 2, "two moments have come")
        os.kill(processes[0].pid, signal.SIGKILL)
        processes.append(start())
        reached = len(moments())
        eventually(lambda: len(moments()) >= reached + 2, "it goes on")
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert len(moments()) == len(set(moments()))


def test_a_template_that_lacks_something_stops_no_other_schedule(
    mam: Mam, caplog: pytest.LogCaptureFixture
) -> None:
    settings(
        mam,
        EVERY_SECOND
        + '[templates.bad]\nagent = "shell"\n[schedules.bad]\nevery = "1s"\ntemplate = "bad"\n',
    )
    words = "schedule bad is not run: schedule bad: template bad has no prompt, agent_session"
    with scheduling(str(mam.registry), load()):
        eventually(lambda: any(mam.registry.glob("*.json")), "the good one runs")
        eventually(lambda: words in caplog.messages, "the bad one is named")
    assert caplog.messages.count(words) == 1, "once"


def test_a_trouble_that_nobody_thought_of_does_not_end_the_schedules(
    mam: Mam, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([OSError("the disk was away for a moment")])

    def look(*words: Any) -> float | None:
        for trouble in looks:
            raise trouble
        return really(*words)

    really = schedule._look
    monkeypatch.setattr(schedule, "_look", look)
    monkeypatch.setattr(schedule, "LOOK_SEC", 0.1)
    settings(mam, EVERY_SECOND)
    with scheduling(str(mam.registry), load()):
        eventually(lambda: any(mam.registry.glob("*.json")), "it goes on")
    assert any("the disk was away for a moment" in words for words in caplog.messages)


def test_one_that_cannot_be_made_keeps_no_other_from_it(mam: Mam, frozen: FakeClock) -> None:
    bad = '[templates.bad]\nagent = "a"\n[schedules.bad]\nevery = "1h"\ntemplate = "bad"\n'
    settings(mam, HOURLY + bad)
    words = "schedule bad: template bad has no prompt, agent_session"
    assert words in mam.ok("schedule", "list").err
    mam("schedule", "run")
    frozen.pass_time(1800)
    answer = mam("schedule", "run")
    assert (answer.code, len(answer.lines)) == (1, 1)
    assert words in answer.err


def test_nobody_starts_a_thread_for_nothing(mam: Mam, folder: Path) -> None:
    with scheduling(str(mam.registry), load()):
        assert not mam.registry.exists()
