"""A process that has everything imported and forks a child for each act.

Starting Python costs 150 ms, a fork 2 ms: that is what makes a thousand kills
affordable. The nursery is also the only parent, so it alone signals and reaps
its children, and no signal can reach a stranger. When its owner goes away it
ends every child and itself.

Commands and answers are JSON lines on stdin and stdout.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]

_PR_SET_PDEATHSIG = 1
_PR_SET_PTRACER = 0x59616D61
_ANYBODY = ctypes.c_ulong(-1)


class Ended(NamedTuple):
    """How a child ended: its exit code (minus the signal's number) and what it said."""

    code: int
    answer: Any

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL


class Child:
    """A forked child, spoken to through its nursery."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery = nursery
        self.pid = pid

    def go(self) -> None:
        """Let a child that was started on hold begin."""
        self._nursery.ask("go", self.pid)

    def signal(self, number: signal.Signals) -> None:
        self._nursery.ask("signal", self.pid, int(number))

    def wait(self) -> Ended:
        code, said = self._nursery.ask("wait", self.pid)
        return Ended(code, json.loads(said) if said else None)

    def kill(self) -> Ended:
        self.signal(signal.SIGKILL)
        return self.wait()


class Nursery:
    """The owner's side: starts the process, asks, and ends it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.nursery"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, task: str, *arguments: Any, hold: bool = False) -> Child:
        """Fork a child that runs `task`; on hold it waits for `go` before it does anything."""
        return Child(self, self.ask("start", task, arguments, hold))

    def run(self, task: str, *arguments: Any) -> Ended:
        return self.start(task, *arguments).wait()

    def ask(self, *command: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the nursery is gone"
        return json.loads(answer)

    def close(self) -> None:
        """Closing its input makes it end its children and itself."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(20)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._process.stdout.close()


# -- the nursery's own side ------------------------------------------------------------------


class _Cradle(NamedTuple):
    go: int
    said: int


class _House:
    def __init__(self, tasks: dict[str, Callable[..., Any]]) -> None:
        self._tasks = tasks
        self._cradles: dict[int, _Cradle] = {}

    def serve(self) -> None:
        for line in sys.stdin:
            verb, *rest = json.loads(line)
            answer = getattr(self, f"_{verb}")(*rest)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
        for pid in list(self._cradles):
            os.kill(pid, signal.SIGKILL)
            self._wait(pid)

    def _start(self, task: str, arguments: list[Any], hold: bool) -> int:
        wait_fd, go_fd = os.pipe()
        hear_fd, say_fd = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.close(go_fd)
            os.close(hear_fd)
            _live(parent, self._tasks[task], arguments, wait_fd if hold else -1, say_fd)
        os.close(wait_fd)
        os.close(say_fd)
        self._cradles[pid] = _Cradle(go_fd, hear_fd)
        return pid

    def _go(self, pid: int) -> None:
        os.write(self._cradles[pid].go, b"!")

    def _signal(self, pid: int, number: int) -> None:
        # Not reaped before `wait`, so the number cannot have passed to anybody else.
        os.kill(pid, number)

    def _wait(self, pid: int) -> tuple[int, str]:
        cradle = self._cradles.pop(pid)
        said = b""
        while part := os.read(cradle.said, 65536):
            said += part
        _, status = os.waitpid(pid, 0)
        os.close(cradle.go)
        os.close(cradle.said)
        return os.waitstatus_to_exitcode(status), said.decode()


def _live(parent: int, task: Callable[..., Any], arguments: list[Any], hold: int, say: int) -> None:
    """The child's whole life; it never returns into the nursery's loop."""
    code = 1
    try:
        prctl = ctypes.CDLL(None).prctl
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # Where a security module lets a tracer see only its own children, we ask to be seen.
        prctl(_PR_SET_PTRACER, _ANYBODY, 0, 0, 0)
        if os.getppid() == parent:
            if hold >= 0:
                os.read(hold, 1)
            answer = json.dumps(task(*arguments)).encode()
            os.write(say, answer)
            code = 0
    except BaseException:
        os.write(say, json.dumps({"crash": traceback.format_exc()}).encode())
    finally:
        os._exit(code)


def _main() -> None:
    import logging

    import mam_core.stores.postgres  # noqa: F401 — a child that imports it plays no part meanwhile
    from tests.faults import cameos, single_acts, workload

    logging.getLogger("mam").setLevel(logging.CRITICAL)
    # What a child would import on its way must be here already: an import opens files of its own,
    # and a fault among those would say nothing about the registry.
    single_acts.rehearse()
    tasks: dict[str, Callable[..., Any]] = {
        "play": workload.play,
        "perform": single_acts.perform,
        "recover": single_acts.take_lock_once,
        "hold lock": cameos.hold_lock,
        "finish on signal": cameos.finish_on_signal,
        "end": cameos.end,
    }
    _House(tasks).serve()


if __name__ == "__main__":
    _main()
