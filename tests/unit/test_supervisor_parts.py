"""The small parts of a supervisor, without one: reports, endings, its line."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import ClassVar

import pytest

from mam_core.work.ending import Ending
from mam_core.work.limits_probe import look_around
from mam_core.work.line import Line
from mam_core.work.orders import Orders
from mam_core.work.processes import Process
from mam_core.work.reports import Ended, Exited, NotStarted, Started, Usage, Why, parse
from tests.support.rows import each_row

needs_linux = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")


class TestReports:
    def test_what_a_supervisor_says_is_read(self) -> None:
        ours, its = socket.socketpair()
        line = Line(its.detach())
        line.say("started", pid=7, started="12", isolation="subreaper", lacking=["proc 1"])
        line.say("usage", processes=1, memory=2, cpu_sec=0.5, io_bytes=3, net_bytes=None)
        line.say("exited", code=None, signal=9)
        line.say("ended", why="agent_ended", code=3, signal=None, kernel_oom=True)
        os.close(line.fd)
        with ours, ours.makefile("rb") as reading:
            started, usage, exited, ended = [parse(words) for words in reading]
        assert started == Started(
            7,
            "12",
            "subreaper",
            (
                "no PID namespace of its own, since it cannot have its own /proc: "
                "the system does not permit it",
            ),
        )
        assert usage == Usage(1, 2, 0.5, 3, None)
        assert exited == Exited(None, signal.SIGKILL)
        assert ended == Ended(Why.AGENT_ENDED, code=3, kernel_oom=True)

    @each_row(
        "words",
        [
            b"",
            b"{",
            b"[]",
            b"7",
            b'{"report": "nothing"}',
            b'{"report": "usage"}',
            b"\xff",
            b"null",
        ],
    )
    def test_nonsense_is_no_report(self, words: bytes) -> None:
        assert parse(words) is None

    @each_row("stage", ["command", "interpreter", "workdir", "stdin", "process", "limits"])
    def test_every_stage_has_its_sentence(self, stage: str) -> None:
        sentences = {NotStarted(stage, number).words for number in (2, 13)}
        assert all(sentence.startswith(("the ", "a limit", "no process")) for sentence in sentences)

    @each_row(
        ("ended", "was_oom"),
        [
            (Ended(Why.OVER_MEMORY), True),
            (Ended(Why.AGENT_ENDED, signal=9, kernel_oom=True), True),
            (Ended(Why.AGENT_ENDED, code=137, kernel_oom=True), True),
            (Ended(Why.AGENT_ENDED, code=137), False),
            (Ended(Why.AGENT_ENDED, code=0, kernel_oom=True), False),
            (Ended(Why.STOPPED, signal=9, kernel_oom=True), False),
        ],
    )
    def test_out_of_memory_needs_both_witnesses(self, ended: Ended, was_oom: bool) -> None:
        """Fault 45: exit 137 alone is only a number, and somebody else may have been killed."""
        assert ended.was_oom is was_oom


class TestTheLine:
    def test_a_worker_that_does_not_read_costs_reports_of_life_only(self) -> None:
        ours, its = socket.socketpair()
        line = Line(its.detach())
        os.set_blocking(line.fd, False)
        for number in range(50_000):
            line.mention("usage", processes=number, memory=0, cpu_sec=0, io_bytes=0, net_bytes=0)
        line.say("exited", code=0, signal=None)
        ours.settimeout(10)
        heard = b""
        while not heard.endswith(b'"signal": null}\n'):
            heard += ours.recv(1 << 16)
            line.finish()
        reports = [parse(words) for words in heard.splitlines()]
        assert None not in reports
        assert len(reports) < 50_000
        ours.close()
        line.say("ended", why="agent_ended")
        line.finish()  # nobody is there to hear it
        os.close(line.fd)

    def test_half_an_order_is_none(self) -> None:
        ours, its = socket.socketpair()
        ours.sendall((100).to_bytes(4, "big") + b"x")
        ours.close()
        line = Line(its.detach())
        assert line.orders() is None
        os.close(line.fd)


class Noted(Process):
    """A process that is none, and notes its signals."""

    heard: ClassVar[list[tuple[int, int]]] = []

    def __init__(self, pid: int) -> None:
        super().__init__(pid, 1, "1", 0.0, 0)

    def send(self, number: int) -> bool:
        self.heard.append((self.pid, number))
        return True


class TestEnding:
    @pytest.fixture(autouse=True)
    def _silence(self) -> None:
        Noted.heard.clear()

    def test_everybody_hears_term_once_and_kill_until_gone(self) -> None:
        ending = Ending(100.0, 5.0)
        one, two = Noted(1), Noted(2)
        ending.step([one], 100.0)
        ending.step([one, two], 101.0)
        assert Noted.heard == [(1, 15), (1, 18), (2, 15), (2, 18)]
        Noted.heard.clear()
        ending.step([two], 105.0)
        ending.step([two], 105.1)
        assert Noted.heard == [(2, 9), (2, 9)]
        assert (len(ending.told), len(ending.killed)) == (2, 1)

    def test_grace_can_only_become_shorter(self) -> None:
        ending = Ending(100.0, 5.0)
        ending.hurry(101.0, 10.0)
        assert not ending.is_over(104.9)
        ending.hurry(102.0, 0.0)
        assert ending.is_over(102.0)

    def test_it_never_sleeps_past_the_end_of_grace(self) -> None:
        ending = Ending(100.0, 0.05)
        pauses = [ending.step([], 100.0 + 0.01 * number) for number in range(5)]
        assert all(0 <= pause <= 0.05 for pause in pauses)


@needs_linux
def test_a_supervisor_imports_next_to_nothing() -> None:
    """Every job pays for its start."""
    program = (
        "import sys; sys.path.append(sys.argv[1]); import mam_core.work.supervisor\n"
        "heavy = {'json', 're', 'enum', 'typing', 'signal', 'socket', 'subprocess', 'dataclasses',"
        " 'collections', 'contextlib', 'functools', 'logging', 'asyncio'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    core = os.path.join(os.path.dirname(__file__), "..", "..", "core")
    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, core], capture_output=True, check=True
    )
    assert told.stdout.split() == []


@needs_linux
def test_where_no_process_can_be_started_that_is_said() -> None:
    """The user's limit of processes is reached."""
    program = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "from mam_core.work import supervisor\n"
        "def refuse(*_): raise BlockingIOError(11, 'no')\n"
        "supervisor.trees.plant = refuse\n"
        "supervisor.main()"
    )
    core = os.path.join(os.path.dirname(__file__), "..", "..", "core")
    ours, its = socket.socketpair()
    with its, open(os.devnull, "wb") as nowhere:
        fds = (its.fileno(), nowhere.fileno(), nowhere.fileno())
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", program, core, *map(str, fds), "a label"],
            pass_fds=set(fds),
        )
    ours.sendall(Orders(("x",), "/", {}, "0" * 32).encode())
    with ours, ours.makefile("rb") as reading:
        no, ended = [parse(words) for words in reading]
    assert process.wait() == 0
    assert no == NotStarted("process", 11)
    assert ended == Ended(Why.NOT_STARTED)


@needs_linux
def test_what_can_be_had_here_is_said() -> None:
    """Decision 30: what is missing is said, never pretended."""
    means = look_around()
    assert len({one.what for one in means}) == len(means) == 8
    assert all(one.words for one in means)
    assert means[0].is_there == hasattr(os, "pidfd_open")
