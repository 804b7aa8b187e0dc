"""What a worker shows: harmless, in lines, and never a reason to wait."""

from __future__ import annotations

import io
import os
import threading
import time
from pathlib import Path

import pytest

from mam_core.agents.streams.base import Happening, Kind, ToolState
from mam_core.work.screen import Screen
from tests.support.rows import each_row

HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m",
    "\x9b2J\x9d0;x\x9c",
    "back\x08\x08\x08up",
    "over\rwritten",
    "\u202eright to left\u202c",
    "a\x00b\x7fc",
    "\u2028next\u2029line",
)


def shown(*happenings: Happening) -> list[str]:
    stream = io.StringIO()
    screen = Screen(stream)
    for happening in happenings:
        screen.show("abc12345", happening)
    screen.close()
    return stream.getvalue().splitlines(keepends=True)


class TestText:
    @each_row("text", HOSTILE)
    def test_hostile_text_never_reaches_the_terminal_raw(self, text: str) -> None:
        """One line each, and nothing in it that a terminal would obey."""
        for line in shown(Happening(Kind.TEXT, text)):
            assert line.endswith("\n")
            assert all(ch.isprintable() for ch in line[:-1]), repr(line)

    def test_a_line_has_the_time_the_job_and_a_sign(self) -> None:
        line = shown(Happening(Kind.ERROR, "it broke"))[0]
        assert line[8:] == " abc12345 ! it broke\n"

    def test_long_lines_are_cut(self) -> None:
        assert len(shown(Happening(Kind.TEXT, "x" * 100_000))[0]) < 250

    def test_each_line_of_a_text_is_one(self) -> None:
        assert len(shown(Happening(Kind.TEXT, "one\ntwo\n\n  \nthree\n"))) == 3

    def test_tools_are_shown_when_they_begin_and_activity_is_not(self) -> None:
        begun = Happening(Kind.TOOL, "ls -l", {"tool": "Bash", "state": ToolState.STARTED})
        ended = Happening(Kind.TOOL, "", {"tool": "Bash", "state": ToolState.ENDED})
        lines = shown(begun, ended, Happening(Kind.THINKING), Happening(Kind.PARTIAL, "x"))
        assert [line[8:] for line in lines] == [" abc12345 · Bash ls -l\n"]

    def test_what_a_terminal_cannot_write_is_written_as_a_number(self, tmp_path: Path) -> None:
        with (tmp_path / "out").open("w", encoding="ascii") as stream:
            screen = Screen(stream)
            screen.say("abc12345", "별")
            screen.close()
        assert b"\\ubcc4" in (tmp_path / "out").read_bytes()


class TestTrouble:
    def test_a_terminal_that_is_gone_is_no_reason_to_stop(self) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "w") as stream:
            screen = Screen(stream)
            for _ in range(100):
                screen.say("abc12345", "hello")
            screen.close()

    def test_a_stdout_that_was_never_there_neither(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdout", None)
        screen = Screen()
        screen.say("abc12345", "hello")
        screen.close()

    def test_a_terminal_that_does_not_take_anything_makes_nobody_wait(self) -> None:
        """What is too much is dropped, and counted when it goes on."""
        reading, writing = os.pipe()
        stream = os.fdopen(writing, "w")
        screen = Screen(stream)
        for number in range(10_000):
            screen.say("abc12345", f"line {number} " + "x" * 100)
        screen.close()  # does not wait for ever, either
        chunks: list[bytes] = []
        with os.fdopen(reading, "rb") as file:
            reader = threading.Thread(
                target=lambda: chunks.extend(iter(lambda: file.read(65536), b""))
            )
            reader.start()
            deadline = time.monotonic() + 30
            while b"are not shown" not in b"".join(chunks) and time.monotonic() < deadline:
                time.sleep(0.02)
                screen.say("abc12345", "once more")
            screen.close()
            stream.close()
            reader.join(30)
        assert b"lines are not shown" in b"".join(chunks)
        assert b"".join(chunks).count(b"\n") < 10_000

    def test_what_is_to_be_done_later_is_done_also_when_the_terminal_is_gone(self) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        done = threading.Event()
        with os.fdopen(writing, "w") as stream:
            screen = Screen(stream)
            screen.say("abc12345", "hello")
            screen.later(done.set)
            assert done.wait(30)
            screen.close()
