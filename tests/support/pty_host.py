"""Verbs on real terminals, many of them quickly: a process that forks one child on a pty for each.

    python -m tests.support.pty_host < lists of words, as JSON > what each wrote, as JSON

Starting Python costs more than most verbs; a fork costs 2 ms. It has no thread, so it may fork.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import mam_core.wiring  # noqa: F401 — what every verb needs
from mam_core.cli import main

_SIZE = struct.pack("HHHH", 40, 120, 0, 0)
#: Seconds for one verb; whoever still runs then hangs.
_PATIENCE_SEC = 90


class Written(NamedTuple):
    """How a verb ended, and every byte that it wrote to its terminal."""

    words: tuple[str, ...]
    code: int
    data: bytes


def on_a_terminal(folder: Path, calls: Sequence[Sequence[str]]) -> list[Written]:
    """Each of them on a terminal of its own, one after the other."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.pty_host"],
        input=json.dumps(calls),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "xterm-256color"},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    told = json.loads(done.stdout)
    return [
        Written(tuple(words), code, base64.b64decode(data))
        for words, (code, data) in zip(calls, told, strict=True)
    ]


def _one(words: list[str]) -> tuple[int, str]:
    pid, terminal = pty.fork()
    if pid == 0:
        _live(words)
    data = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux says so when the last one has left the terminal
            break
        if not part:
            break
        data += part
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), base64.b64encode(data).decode()


def _live(words: list[str]) -> None:
    """As the console script does it, from open streams to the exit code."""
    fcntl.ioctl(1, termios.TIOCSWINSZ, _SIZE)
    signal.alarm(_PATIENCE_SEC)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    sys.argv = ["mam", *words]
    del os.environ["PYTHONPATH"]  # it brought us here; a person's shell has none
    main.entry()


def _main() -> None:
    for verb in main.VERBS:  # here once, instead of in every child
        main.load(verb)
    told = [_one(words) for words in json.load(sys.stdin)]
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    _main()
