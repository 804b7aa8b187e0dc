"""What a worker shows on its terminal: for a person who looks in, not for programs.

Everything foreign goes through the sanitiser. Nothing here makes a worker wait:
lines are written by a thread of their own, and of a terminal that is stopped
(^S, a reader that does not read) the rest is dropped and counted. One that is
gone is no reason to stop either: then nothing is shown.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from mam_core.agents.streams.base import Happening, Kind, ToolState
from mam_core.safe_text import clip, one_line

_WIDTH = 200
#: More lines than this are not held for a terminal that is slower than its agents.
_HELD = 2000
#: As many as are written at once.
_BATCH = 200
#: How long the last lines may take when the worker ends.
_LAST_LINES_SEC = 1.0

_SIGNS = {
    Kind.TEXT: " ",
    Kind.TOOL: "·",
    Kind.RETRY: "~",
    Kind.ERROR: "!",
    Kind.DENIAL: "!",
    Kind.QUESTION: "?",
    Kind.QUOTA: "!",
    Kind.RESULT: "=",
    Kind.LOG: " ",
}

#: Time, job, sign, words.
_Line = tuple[float, str, str, str]


class Screen:
    """One for all slots of a worker; a line at a time, whoever speaks."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._write = _writer(stream if stream is not None else sys.stdout)
        self._held: deque[_Line | Callable[[], object]] = deque()
        self._lost = 0
        self._gone = False
        self._closing = False
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None

    def say(self, job_id: str, words: str) -> None:
        """A line of our own about a job."""
        self._put((time.time(), job_id, "-", words))

    def show(self, job_id: str, happening: Happening) -> None:
        """What an agent does; mere activity is not shown."""
        sign = _SIGNS.get(happening.kind)
        if sign is None or self._gone:
            return
        text = happening.text
        if happening.kind is Kind.TOOL:
            if happening.data.get("state") is not ToolState.STARTED:
                return
            text = f"{happening.data.get('tool', '')} {text}"
        now = time.time()
        for line in text.splitlines():
            if line.strip():
                self._put((now, job_id, sign, line))

    def later(self, act: Callable[[], object]) -> None:
        """Done by the thread that writes, in its turn: for whatever else may make one wait."""
        self._put(act)

    def close(self) -> None:
        """Wait for the last lines, but not for ever."""
        with self._news:
            self._closing = True
            self._news.notify()
        if self._thread is not None:
            self._thread.join(_LAST_LINES_SEC)

    def _put(self, item: _Line | Callable[[], object]) -> None:
        with self._news:
            if self._gone and not callable(item):
                return
            if len(self._held) >= _HELD:
                self._lost += 1
                return
            self._held.append(item)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mam-screen", daemon=True)
                self._thread.start()
            self._news.notify()

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._held and not self._closing:
                    self._news.wait()
                if not self._held:
                    return
                items = [self._held.popleft() for _ in range(min(_BATCH, len(self._held)))]
                lost, self._lost = self._lost, 0
            lines = "".join(_formed(item) for item in items if not callable(item))
            if lost:
                lines += f"… {lost} lines are not shown: the terminal is too slow\n"
            try:
                if lines and not self._gone:
                    self._write(lines)
            except (OSError, ValueError):
                self._gone = True
            for item in items:
                if callable(item):
                    with suppress(Exception):  # it had its chance to be heard
                        item()


def _formed(line: _Line) -> str:
    moment, job_id, sign, words = line
    when = time.strftime("%H:%M:%S", time.localtime(moment))
    return f"{when} {job_id} {sign} {clip(one_line(words), _WIDTH)}\n"


def _writer(stream: TextIO | None) -> Callable[[str], object]:
    """Past Python's buffer where there is a file below it: that has a lock, which whoever waits
    for a stopped terminal would hold, and everybody with him at the end of the program."""
    try:
        if stream is None or stream.fileno() < 0:
            raise OSError
    except (OSError, ValueError):
        return stream.write if stream is not None else len

    def write(text: str) -> None:
        data = memoryview(text.encode(stream.encoding or "utf-8", "backslashreplace"))
        while data:
            try:
                data = data[os.write(stream.fileno(), data) :]
            except BlockingIOError:  # somebody made the terminal non-blocking, for all of us
                time.sleep(0.05)

    return write
