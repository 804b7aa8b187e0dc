"""Pipes that close, streams that are missing, disks that are full: no traceback, no loss."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Mam, Process, is_one_sentence

#: Writes into a pipe whose reader has ended, which is waited for.
UNREAD = "exec 3> >(true); wait $!; {} >&3 3>&-"


@pytest.fixture
def long(mam: Mam) -> str:
    """A job whose history is longer than a pipe holds."""
    job_id = mam.register("p")
    log = mam.folder / ".mam" / "delegate_job_logs" / job_id / "events.ndjson"
    line = f'{{"n": 2, "timestamp": "x", "event": "progress", "note": "{"y" * 200}"}}\n'
    log.write_text(line * 2000)
    return job_id


@pytest.mark.parametrize("form", ["", "--json"])
def test_a_reader_that_leaves_is_no_error(
    long: str, shell: Callable[..., Process], form: str
) -> None:
    """N26"""
    answer = shell(f"mam logs {long} {form} | head -1")
    assert answer.returncode == 0
    assert len(answer.stdout.splitlines()) == 1
    assert answer.stderr == ""


@pytest.mark.parametrize("words", ["list", "list --json", "--help", "--version", "logs --list"])
def test_a_reader_that_was_never_there_is_no_error(
    mam: Mam, shell: Callable[..., Process], words: str
) -> None:
    """N26: what is left in the buffer at the end goes nowhere, quietly"""
    mam.register()
    answer = shell(UNREAD.format(f"mam {words}"))
    assert answer.returncode == 0
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("closed", "code"), [(">&-", 1), ("2>&-", 0), ("<&-", 0), ("<&- >&- 2>&-", 1)]
)
def test_closed_streams_harm_nothing(
    mam: Mam, shell: Callable[..., Process], closed: str, code: int
) -> None:
    answer = shell(f"mam register --prompt p --agent a --label l {closed}")
    assert answer.returncode == code
    assert "Error" not in answer.stderr
    (path,) = mam.registry.glob("*.json")
    assert mam.record(path.stem)["prompt"] == "p"
    assert mam.ok("list").err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_under_the_output_is_said(mam: Mam, shell: Callable[..., Process]) -> None:
    mam.register()
    answer = shell("mam list > /dev/full")
    assert answer.returncode == 1
    assert is_one_sentence(answer.stderr)


class TestAnIdThatCannotBeWritten:
    """E1, E8: it is named on stderr, for the job is there and nobody could guess it."""

    WAYS = (
        pytest.param("{} > /dev/full", "no space left on device", id="full disk"),
        pytest.param(UNREAD, "broken pipe", id="closed pipe"),
        pytest.param("{} >&-", "it is closed", id="closed stdout"),
    )

    @pytest.mark.parametrize(("way", "cause"), WAYS)
    def test_of_a_new_job(
        self, mam: Mam, shell: Callable[..., Process], way: str, cause: str
    ) -> None:
        answer = shell(way.format("mam register --prompt p --agent a --label l"))
        (path,) = mam.registry.glob("*.json")
        lost = "but its id could not be written to stdout"
        assert answer.returncode == 1
        assert answer.stderr == f"mam: job {path.stem} was registered, {lost}: {cause}\n"

    @pytest.mark.parametrize(("way", "cause"), WAYS)
    def test_of_a_claim(
        self, mam: Mam, shell: Callable[..., Process], way: str, cause: str
    ) -> None:
        job_id = mam.register()
        answer = shell(way.format("mam pick --label tmux:a"))
        assert answer.returncode == 1
        assert answer.stderr.startswith(f"mam: job {job_id} was claimed, but its id could not")
        assert cause in answer.stderr

    def test_of_many_names_them(self, mam: Mam, shell: Callable[..., Process]) -> None:
        line = '{"prompt": "p", "agent": "a", "agent_session": "l"}\n'
        (mam.folder / "jobs").write_text(line * 2)
        answer = shell("mam register --bulk jobs >&-")
        assert answer.returncode == 1
        assert "2 jobs were registered" in answer.stderr
        assert all(path.stem in answer.stderr for path in mam.registry.glob("*.json"))


def test_a_table_in_a_pipe_is_whole(mam: Mam, process: Callable[..., Process]) -> None:
    mam.register("x" * 150, "--agent-session", "s" * 100, "--group", "g" * 40)
    environ = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    row = process("list", env=environ).stdout.splitlines()[1]
    assert row.split()[4:] == ["s" * 100, "g" * 40, "x" * 150]


def test_a_closed_stderr_does_not_stop_a_warning(mam: Mam, shell: Callable[..., Process]) -> None:
    mam.register("same")
    answer = shell("mam register --prompt same --agent shell --label tmux:a 2>&-")
    assert answer.returncode == 0
    assert mam.path(answer.stdout.strip()).exists()


def test_an_interrupt_ends_it_quietly(folder: Path) -> None:
    """It waits for stdin; Ctrl-C is the way out."""
    words = ["register", "--prompt-file", "-", "--agent", "a", "--label", "l"]
    with subprocess.Popen(
        [sys.executable, "-m", "mam_core.cli.main", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
    ) as process:
        try:
            wait_until_it_sleeps(process.pid)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (130, b"", b"")
    assert list(folder.iterdir()) == []


def wait_until_it_sleeps(pid: int) -> None:
    """Until it reads from its pipe: imports are done then, and Python handles the signal."""
    for _ in range(2000):
        try:
            if "pipe" in Path(f"/proc/{pid}/wchan").read_text():
                return
            asleep = Path(f"/proc/{pid}/syscall").read_text().startswith("0 0x0 ")
        except OSError:
            pytest.skip("the kernel does not tell what a process waits for")
        if asleep:
            return
        time.sleep(0.01)
    pytest.fail("it never came to wait for its input")


def test_a_table_is_as_wide_as_the_terminal_it_is_on(mam: Mam) -> None:
    mam.register("x" * 300)
    leader, follower = pty.openpty()
    try:
        subprocess.run(["stty", "cols", "66"], stdin=follower, check=True)
        environ = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
        subprocess.run(
            [sys.executable, "-m", "mam_core.cli.main", "list"],
            cwd=mam.folder,
            env={**environ, "TERM": "xterm"},
            stdin=follower,
            stdout=follower,
            check=True,
            timeout=60,
        )
        shown = os.read(leader, 65536).decode()
    finally:
        os.close(leader)
        os.close(follower)
    heading, row = shown.replace("\r", "").splitlines()
    assert "\x1b[33mpending\x1b[0m" in row
    assert len(row.replace("\x1b[33m", "").replace("\x1b[0m", "")) == 66
    assert heading.startswith("JOB ID")
