"""How a supervised command is connected to us: by pipes both ways, or by a terminal of its own."""

from __future__ import annotations

import os
import signal

import pytest

from mam_core.clock import SystemClock
from mam_core.work.agent_input import AgentDoesNotRead, AgentInput
from mam_core.work.orders import Isolation, Orders, new_token
from mam_core.work.reports import Ended, Why
from mam_core.work.running import Running, Way

_LOOK_SEC = 0.2


def start(way: Way, *argv: str, isolation: Isolation = Isolation.AUTO) -> Running:
    orders = Orders(argv, "/", dict(os.environ), new_token(), grace_sec=0.5, isolation=isolation)
    size = (33, 77) if way is Way.TERMINAL else None
    return Running.start(orders, SystemClock(), lambda _mark: None, way, size)


def until(running: Running, words: bytes) -> bytes:
    said = b""
    while words not in said:
        assert not running.is_over, said
        said += b"".join(one.data for one in running.turn(_LOOK_SEC).output)
    return said


def end(running: Running) -> tuple[bytes, Ended]:
    said = b""
    try:
        while not running.is_over:
            said += b"".join(one.data for one in running.turn(_LOOK_SEC).output)
    finally:
        running.close()
    assert running.ended is not None
    return said, running.ended


class TestDialogue:
    def test_more_than_a_pipe_holds_is_said_without_waiting(self) -> None:
        running = start(Way.DIALOGUE, "cat")
        said = b"a line of it\n" * 100_000
        running.say(said)
        running.hang_up()
        heard, ended = end(running)
        assert heard == said
        assert ended.code == 0

    def test_one_who_does_not_read_is_not_waited_for(self) -> None:
        reading, writing = os.pipe()
        spoken = AgentInput(writing, bound=200_000)
        spoken.say(b"x" * 150_000)
        with pytest.raises(AgentDoesNotRead, match="has not read"):
            spoken.say(b"x" * 200_000)
        os.close(reading)
        spoken.say(b"into the void")
        assert not spoken.is_open
        os.close(writing)


class TestTerminal:
    @pytest.mark.parametrize("isolation", [Isolation.AUTO, Isolation.OFF])
    def test_it_is_its_controlling_terminal_and_has_its_size(self, isolation: Isolation) -> None:
        story = (
            "trap 'stty size' WINCH; test -t 0 && test -t 1 && test -t 2 && echo three;"
            "stty size; : </dev/tty && echo mine; until read word; do :; done;"
            "echo got $word; exit 4"
        )
        running = start(Way.TERMINAL, "sh", "-c", story, isolation=isolation)
        assert b"33 77" in until(running, b"mine")
        running.resize(20, 50)
        until(running, b"20 50")
        running.type(b"hello\n")
        said, ended = end(running)
        assert b"got hello" in said
        assert (ended.why, ended.code) == (Why.AGENT_ENDED, 4)

    def test_control_c_reaches_the_agent_and_not_its_supervisor(self) -> None:
        running = start(Way.TERMINAL, "sh", "-c", "echo ready; exec sleep 600")
        until(running, b"ready")
        running.type(b"\x03")
        _, ended = end(running)
        assert (ended.why, ended.signal) == (Why.AGENT_ENDED, signal.SIGINT)
