"""Supervised stand-in agents for tests, and a witness of their own for who is still alive.

Every process of a stand-in has the test's word in its command line, which no
supervisor looks at: whoever carries it after the end is a survivor.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from mam_core.process_mark import ProcessMark
from mam_core.work.marks import AttemptMark
from mam_core.work.orders import FOREVER, Deadlines, Isolation, Orders, new_token
from mam_core.work.processes import look, pids, read_fact
from mam_core.work.reports import Ended, Report, Started
from mam_core.work.supervised import Supervised
from tests.support.patience import PATIENCE_SEC, eventually

AGENTS = Path(__file__).parent / "agents"

_Report = TypeVar("_Report")


def stand_in(name: str, *arguments: object) -> tuple[str, ...]:
    """The command of a stand-in agent."""
    words = [str(argument) for argument in arguments]
    return (sys.executable, "-I", "-S", str(AGENTS / f"{name}.py"), *words)


def with_word(word: str) -> list[int]:
    """The living processes that have `word` in their command line."""
    mine = word.encode()
    return [pid for pid in pids() if mine in read_fact(pid, "cmdline") and look(pid) is not None]


class Run:
    """One supervised attempt: its reports and its output so far."""

    def __init__(self, orders: Orders, until: Deadlines = FOREVER) -> None:
        self.orders = orders
        self._until = until
        self.mark: AttemptMark | None = None
        self.output = b""
        self.reports: list[Report] = []
        reading, writing = os.pipe()
        try:
            self.supervised = Supervised.start(
                orders, stdout=writing, stderr=writing, remember=self._remember
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._reader = threading.Thread(target=self._read, args=(reading,))
        self._reader.start()

    @property
    def the_mark(self) -> AttemptMark:
        assert self.mark is not None
        return self.mark

    @property
    def lines(self) -> list[str]:
        return self.output.decode().splitlines()

    def told(self, kind: type[_Report]) -> list[_Report]:
        self.reports += self.supervised.read()
        return [report for report in self.reports if isinstance(report, kind)]

    def until_told(self, kind: type[_Report], timeout: float = PATIENCE_SEC) -> _Report:
        eventually(lambda: bool(self.told(kind)), f"{kind.__name__}; {self.reports}", timeout)
        return self.told(kind)[-1]

    def until_said(self, word: str) -> str:
        """The first line of the agent's output that begins with `word`."""
        eventually(lambda: any(line.startswith(word) for line in self.lines), f"says {word}")
        return next(line for line in self.lines if line.startswith(word))

    def ended(self) -> Ended:
        return self.until_told(Ended)

    def output_is_over(self) -> bytes:
        """All that it printed; its end comes when nobody is left who could print."""
        self._reader.join(PATIENCE_SEC)
        assert not self._reader.is_alive(), "somebody still holds the output open"
        return self.output

    def finish(self) -> None:
        self.supervised.close()
        self._reader.join(PATIENCE_SEC)

    def _remember(self, supervisor: ProcessMark) -> Deadlines:
        self.mark = AttemptMark.of(self.orders.token, supervisor)
        return self._until

    def _read(self, pipe: int) -> None:
        with open(pipe, "rb", buffering=0) as file:
            while data := file.read(65536):
                self.output += data


class Stage:
    """Where a test starts its attempts; nothing is alive when it is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.word = f"word-{secrets.token_hex(8)}"
        self._runs: list[Run] = []

    def orders(self, agent: str, *arguments: object, **given: Any) -> Orders:
        environ: Mapping[str, str] = {"PATH": os.environ["PATH"]}
        facts = {"cwd": str(self.folder), "environ": environ, "token": new_token()}
        return Orders(
            stand_in(agent, *arguments, self.word), **{**facts, "grace_sec": 0.5, **given}
        )

    def run(self, agent: str, *arguments: object, **given: Any) -> Run:
        return self.start(self.orders(agent, *arguments, **given))

    def hostile(self, way: Isolation, grace_sec: float = 0.3) -> Run:
        """Five processes that do not want to end, all of them there."""
        run = self.run("hostile", isolation=way, grace_sec=grace_sec)
        run.until_said("ready")
        run.until_told(Started)
        return run

    def start(self, orders: Orders, until: Deadlines = FOREVER) -> Run:
        run = Run(orders, until)
        self._runs.append(run)
        return run

    def survivors(self) -> list[int]:
        return with_word(self.word)

    def clean(self) -> None:
        """Whatever a failed test left: by its word, which nobody else has."""
        for run in self._runs:
            run.supervised.kill()
        deadline = time.monotonic() + PATIENCE_SEC
        while (left := with_word(self.word)) and time.monotonic() < deadline:
            for pid in left:
                end_surely(pid)
            time.sleep(0.01)
        for run in self._runs:
            run.finish()


def end_surely(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """By pidfd: between two looks a pid may have passed on."""
    process = look(pid)
    if process is not None:
        process.send(number)


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    made = Stage(folder)
    try:
        yield made
    finally:
        made.clean()


class Stranger:
    """A process that has nothing to do with any attempt, and remembers every signal."""

    PROGRAM = """
import os, signal, sys, time
def note(number, _):
    os.write(2, b"signal %d\\n" % number)
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    try:
        signal.signal(number, note)
    except (OSError, ValueError):
        pass
os.write(1, b"ready\\n")
end = time.monotonic() + 1500
while time.monotonic() < end:
    time.sleep(1)
"""

    def __init__(self, folder: Path, environ: Mapping[str, str] | None = None) -> None:
        self._notes = folder / f"stranger-{secrets.token_hex(4)}"
        with self._notes.open("wb") as notes:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", self.PROGRAM],
                stdout=subprocess.PIPE,
                stderr=notes,
                env={**os.environ, **(environ or {})},
            )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_untouched(self) -> bool:
        return self._process.poll() is None and self._notes.read_bytes() == b""

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.communicate()


@contextmanager
def strangers(folder: Path, count: int) -> Iterator[list[Stranger]]:
    """Of the same user, each with a token of its own, as other attempts would have."""
    made = [Stranger(folder, {"MAM_ATTEMPT_TOKEN": new_token()}) for _ in range(count)]
    try:
        yield made
    finally:
        for stranger in made:
            stranger.end()


def start_worker(folder: Path, word: str, way: str) -> subprocess.Popen[bytes]:
    """A stand-in worker with the five-process agent; its output is ``folder/output``."""
    agent = AGENTS / "hostile.py"
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.stand_in_worker", str(folder), way, str(agent)],
        cwd=AGENTS.parents[2],
        env={**os.environ, "STAND_IN_WORD": word},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
