"""The worker's side of a supervisor: start it, hear it, stop it.

Nothing here waits unless it is asked to. The worker may be killed at any moment:
its end of the line closes with it, and the supervisor ends the attempt.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from mam_core.errors import MamError
from mam_core.process_mark import ProcessMark
from mam_core.work.caps import Means, scope_argv, scope_environ
from mam_core.work.orders import FOREVER, Deadlines, Orders
from mam_core.work.reports import Ended, Report, Why, parse

_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); from mam_core.work.supervisor import main; main()"
)
_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

#: What a supervisor gets of our environment: it needs nothing, and must not carry a token.
_ENVIRONMENT = ("HOME", "PATH", "TMPDIR", "LANG")


class SupervisorFailed(MamError):
    """The supervisor of an attempt could not be started."""

    title = "Supervisor"


class Supervised:
    """One attempt under its supervisor."""

    def __init__(self, process: subprocess.Popen[bytes], line: socket.socket) -> None:
        self._process = process
        self._line = line
        self._heard = b""
        self._ended: Ended | None = None

    @classmethod
    def start(
        cls,
        orders: Orders,
        *,
        stdout: int,
        stderr: int,
        stdin: int | None = None,
        remember: Callable[[ProcessMark], Deadlines | None] = lambda _mark: None,
    ) -> Supervised:
        """Start a supervisor, and through it the agent; does not wait for either.

        `stdout`, `stderr` and `stdin` are open files that the agent gets; the
        caller closes its own copies. A `stdin` goes before the one of the orders;
        when it is a terminal, it becomes the agent's controlling one. `remember`
        is told who the supervisor is before the agent is started, and answers until
        when it may run: when it raises, or that moment has passed, nothing is started.
        """
        orders.check()
        ours, its = socket.socketpair()
        try:
            with its:
                files = (its.fileno(), stdout, stderr, *(() if stdin is None else (stdin,)))
                supervised = cls(_spawn(orders, *files), ours)
        except BaseException:
            ours.close()
            raise
        try:
            mark = ProcessMark.of(supervised.pid)
            if mark is None:
                raise SupervisorFailed("the supervisor died before it could be told anything")
            until = remember(mark) or FOREVER
            with suppress(OSError):  # it is dead: the next `read` says so
                ours.sendall(orders.encode(until))
        except BaseException:
            supervised.close()
            raise
        ours.setblocking(False)
        return supervised

    @property
    def pid(self) -> int:
        return self._process.pid

    def fileno(self) -> int:
        """To wait on; readable when `read` has something."""
        return self._line.fileno()

    def read(self) -> list[Report]:
        """What it has said since. The last report of all is `Ended`, also when it was killed."""
        reports: list[Report] = []
        while self._ended is None:
            try:
                data = self._line.recv(65536)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self._ended = Ended(Why.LOST)
                reports.append(self._ended)
            *lines, self._heard = (self._heard + data).split(b"\n")
            for line in lines:
                report = parse(line)
                if report is not None:
                    reports.append(report)
                if isinstance(report, Ended):
                    self._ended = report
        return reports

    def stop(self, grace_sec: float | None = None) -> None:
        """End the attempt: TERM to all, grace, KILL. May be said again with a shorter grace."""
        self._say("stop" if grace_sec is None else f"stop {grace_sec:f}")

    def allow(self, until: Deadlines) -> None:
        """It may run until then, and no longer until what was said before."""
        self._say(until.words)

    def _say(self, words: str) -> None:
        with suppress(OSError):  # dead, or deaf because it is stopped: see `kill`
            self._line.send(f"{words}\n".encode())

    def wait(self, timeout: float | None = None) -> Ended | None:
        """Its last word; None when that has not come in time. Other reports are passed over."""
        for _ in self.until_end(timeout):
            pass
        return self._ended

    def until_end(self, timeout: float | None = None) -> Iterator[Report]:
        """Every report as it comes, until the last one or the end of the time."""
        deadline = None if timeout is None else time.monotonic() + timeout
        # Not select: a worker may have more than 1024 files open.
        poll = select.poll()
        poll.register(self._line, select.POLLIN)
        while self._ended is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            poll.poll(None if left is None else left * 1000 + 1)
            yield from self.read()

    def kill(self) -> None:
        """For a supervisor that does not answer. What is left of its tree is found by the token."""
        self._process.kill()

    def close(self) -> None:
        """Hang up, which ends what still runs, and bury the supervisor if it has ended."""
        self._line.close()
        # It ends by itself; a worker has better things to do than to wait for that.
        self._process.poll()
        with _burying:
            _unburied[:] = [one for one in (*_unburied, self._process) if one.poll() is None]


#: Supervisors that were still at work when their line was closed.
_unburied: list[subprocess.Popen[bytes]] = []
#: Slots are threads: two that close at once would each forget the other's.
_burying = threading.Lock()


def _spawn(orders: Orders, *files: int) -> subprocess.Popen[bytes]:
    """`files`: its line, the agent's two outputs, and its input if it has one.

    A scope is made around the supervisor: `systemd-run` becomes it, so its pid stays the same.
    """
    before: tuple[str, ...] = ()
    environ = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    if orders.cap == Means.SCOPE and orders.memory_max:
        before = scope_argv(orders.memory_max)
        environ |= scope_environ()
    # Not 0, 1 or 2, which the supervisor has of its own.
    given = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in files]
    try:
        return subprocess.Popen(
            [
                *before,
                *(sys.executable, "-I", "-S", "-c", _BOOT, _SOURCE),
                *map(str, given),
                orders.label,
            ],
            cwd="/",
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=given,
            start_new_session=True,
        )
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise SupervisorFailed(f"the supervisor cannot be started: {why}") from problem
    finally:
        for fd in given:
            os.close(fd)
