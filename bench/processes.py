"""Whole processes, from their start to their end: what a person or a script waits for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from bench.figures import Wrong
from bench.rounds import Runner

#: The command as it was installed beside the interpreter that runs us.
MAM = os.path.join(os.path.dirname(sys.executable), "mam")


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def process(name: str, command: Sequence[str]) -> Runner:
    """A runner that starts the command once a turn; its output goes nowhere."""

    def work() -> int:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        _check(done, command)
        return 1

    return Runner(name, work)


def output(command: Sequence[str]) -> bytes:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    _check(done, command)
    return done.stdout


def _check(done: subprocess.CompletedProcess[bytes], command: Sequence[str]) -> None:
    if done.returncode != 0 or done.stderr:
        said = done.stderr.decode(errors="replace").strip()
        raise Wrong(f"{' '.join(command)!r} ended with {done.returncode}: {said}")
