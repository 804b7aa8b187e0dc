"""A supervised command with its two outputs: everything that comes from it, in one place.

Whoever has one takes turns: what was printed and reported meanwhile, or nothing
after the pause. Its end is known when the supervisor has said so and the output
is over, too. What is said to it is queued, and goes out in the turns.
"""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from typing import NamedTuple

from mam_core.clock import Clock
from mam_core.process_mark import ProcessMark
from mam_core.work.agent_input import AgentInput
from mam_core.work.orders import Deadlines, Orders
from mam_core.work.output import OutputLog
from mam_core.work.reader import OutputReader, Printed
from mam_core.work.reports import Ended, Report
from mam_core.work.supervised import Supervised

#: After the last process is gone, its output should be at its end; longer is not waited.
_LAST_WORDS_SEC = 2.0
#: A supervisor that was told to stop gets this beyond the grace.
_STUCK_SEC = 10.0
_CHUNK = 65536


class Way(StrEnum):
    """How the command is connected to us."""

    PIPES = "pipes"  #: two outputs; its input is a file, or nothing
    DIALOGUE = "dialogue"  #: and a pipe as its input
    TERMINAL = "terminal"  #: a terminal of its own, for input and both outputs


class Heard(NamedTuple):
    """What came in one turn."""

    output: list[Printed]
    reports: list[Report]


class Ends(NamedTuple):
    """Our ends of a command's files."""

    outputs: dict[int, bool]  #: with whether it is standard error
    input: int | None = None


class Running:
    """One command, from its start until nothing of it is left."""

    def __init__(self, supervised: Supervised, ends: Ends, clock: Clock) -> None:
        self.ended: Ended | None = None
        self._supervised = supervised
        self._pipes = ends.outputs  #: read in our turns
        self._reader: OutputReader | None = None  #: or by a thread
        self._input = AgentInput(ends.input) if ends.input is not None else None
        self._clock = clock
        self._last_words_at: float | None = None
        self._give_up_at: float | None = None
        self._poll = select.poll()
        for fd in (supervised.fileno(), *ends.outputs):
            self._poll.register(fd, select.POLLIN)

    @classmethod
    def start(
        cls,
        orders: Orders,
        clock: Clock,
        remember: Callable[[ProcessMark], Deadlines | None],
        way: Way = Way.PIPES,
        size: tuple[int, int] | None = None,
    ) -> Running:
        """`remember` is told who the supervisor is before the command is started, and answers
        until when that may run.

        `size` is that of a terminal: rows and columns.
        """
        with ExitStack() as ours, ExitStack() as its:
            connect = _terminal if way is Way.TERMINAL else _pipes
            ends, given = connect(way, ours, its)
            if size is not None:
                _resize(next(iter(ends.outputs)), *size)
            stdout, stderr, *stdin = given
            supervised = Supervised.start(
                orders,
                stdout=stdout,
                stderr=stderr,
                stdin=stdin[0] if stdin else None,
                remember=remember,
            )
            ours.pop_all()
        return cls(supervised, ends, clock)

    @property
    def supervisor(self) -> int:
        return self._supervised.pid

    @property
    def is_over(self) -> bool:
        if self.ended is None:
            return False
        now = self._clock.since_boot()
        self._last_words_at = self._last_words_at or now + _LAST_WORDS_SEC
        reader = self._reader
        if reader is not None:
            return reader.is_over or (now > self._last_words_at and not reader.has_news)
        return not self._pipes or now > self._last_words_at

    @contextmanager
    def reading_into(self, log: OutputLog, *, newest_only: bool) -> Iterator[None]:
        """Meanwhile a thread reads the outputs into the log, whatever we wait for; the turns bring
        what it has read. `newest_only`: what we are late with need not all come, but its end."""
        for fd in self._pipes:
            self._poll.unregister(fd)
        self._reader = OutputReader(self._pipes, log, self._clock, newest_only=newest_only)
        self._pipes = {}
        self._poll.register(self._reader.fileno(), select.POLLIN)
        try:
            yield
        finally:
            self._poll.unregister(self._reader.fileno())
            self._reader.close()
            self._reader = None

    def turn(self, pause_sec: float, *others: int) -> Heard:
        """Wait until something comes, at most for the pause; `others` are files that end it, too.

        Whether there is something on one of those is for their owner to see.
        """
        heard = Heard([], [])
        for fd in others:
            self._poll.register(fd, select.POLLIN)
        ready = self._poll.poll(max(0.0, pause_sec) * 1000 + 1)
        for fd in others:
            self._poll.unregister(fd)
        for fd, _ in ready:
            if fd in self._pipes:
                self._read(fd, heard)
            elif self._reader is not None and fd == self._reader.fileno():
                heard.output.extend(self._reader.take())
            elif fd == self._supervised.fileno():
                heard.reports.extend(self._supervised.read())
            elif self._input is not None and fd == self._input.fd:
                self._input.flush()
                self._attend_input()
        for report in heard.reports:
            if isinstance(report, Ended):
                self.ended = report
                self._poll.unregister(self._supervised.fileno())
        return heard

    # -- what is said to it ----------------------------------------------------------------

    def say(self, data: bytes) -> None:
        """To its input, without waiting; raises `AgentDoesNotRead` when too much is unread."""
        if self._input is not None:
            self._input.say(data)
            self._attend_input()

    @property
    def was_heard(self) -> bool:
        """All that was said has left the pipe: somebody read it. False where nobody can tell."""
        return self._input is not None and self._input.was_read

    #: What a person at its terminal does; the same queue.
    type = say

    def hang_up(self) -> None:
        """Its input ends after what was said."""
        if self._input is not None:
            self._input.hang_up()
            self._attend_input()

    def resize(self, rows: int, cols: int) -> None:
        """The size of its terminal; the kernel tells the agent."""
        for fd in self._pipes:
            _resize(fd, rows, cols)

    def listen(self, listening: bool) -> None:
        """Whether its output is read. One who is not read waits, as before a slow terminal."""
        for fd in self._pipes:
            self._poll.register(fd, select.POLLIN if listening else 0)

    # -- its end ---------------------------------------------------------------------------

    def allow(self, until: Deadlines) -> None:
        """Its supervisor ends it then, whatever we do."""
        self._supervised.allow(until)

    def stop(self, grace_sec: float) -> None:
        """Said in every turn until it is over: a supervisor that does not answer is killed."""
        now = self._clock.since_boot()
        if self._give_up_at is None:
            self._give_up_at = now + grace_sec + _STUCK_SEC
            self._supervised.stop()
        elif now > self._give_up_at:
            self._supervised.kill()  # what it leaves is found by the token
            self._give_up_at = now + _STUCK_SEC

    def close(self) -> None:
        """Hang up; what still runs is ended by its supervisor."""
        for fd in self._pipes:
            os.close(fd)
        self._pipes.clear()
        self._close_input()
        self._supervised.close()

    def _read(self, fd: int, heard: Heard) -> None:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError as problem:
            if problem.errno != errno.EIO:
                raise
            data = b""  # a terminal that nobody holds open any more
        if data:
            heard.output.append(Printed(data, self._pipes[fd], self._clock.since_boot()))
            return
        self._poll.unregister(fd)
        os.close(fd)
        del self._pipes[fd]

    def _attend_input(self) -> None:
        """Wake up for the input only while there is something to say."""
        if self._input is None:
            return
        if not self._input.is_open:
            self._close_input()
        elif self._input.is_waiting:
            self._poll.register(self._input.fd, select.POLLOUT)
        else:
            self._forget(self._input.fd)

    def _close_input(self) -> None:
        if self._input is not None:
            self._forget(self._input.fd)
            os.close(self._input.fd)
            self._input = None

    def _forget(self, fd: int) -> None:
        try:
            self._poll.unregister(fd)
        except KeyError:
            return


def _pipes(way: Way, ours: ExitStack, its: ExitStack) -> tuple[Ends, list[int]]:
    outputs: dict[int, bool] = {}
    given: list[int] = []
    for aside in (False, True):
        reading, writing = os.pipe()
        ours.callback(os.close, reading)
        its.callback(os.close, writing)
        outputs[reading] = aside
        given.append(writing)
    if way is Way.PIPES:
        return Ends(outputs), given
    reading, writing = os.pipe()
    ours.callback(os.close, writing)
    its.callback(os.close, reading)
    return Ends(outputs, writing), [*given, reading]


def _terminal(_way: Way, ours: ExitStack, its: ExitStack) -> tuple[Ends, list[int]]:
    """Its terminal's other end is ours, twice: what is closed for reading may still be written."""
    master, slave = os.openpty()
    ours.callback(os.close, master)
    its.callback(os.close, slave)
    typing = os.dup(master)
    ours.callback(os.close, typing)
    return Ends({master: False}, typing), [slave, slave, slave]


def _resize(fd: int, rows: int, cols: int) -> None:
    import termios

    termios.tcsetwinsize(fd, (rows, cols))
