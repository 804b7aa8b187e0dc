"""The operator's own check of a change: a program, bounded in time; another code than 0 says no."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

from mam_core.pace import paced
from mam_core.safe_text import one_line

PATIENCE_SEC = 30.0
_LOOK_SEC = 0.05
_TAIL_BYTES = 4096
_MOST_WORDS = 120


def objection(
    argv: Sequence[str],
    environ: Mapping[str, str],
    stop: threading.Event,
    patience_sec: float = PATIENCE_SEC,
) -> str:
    """What it has against the change, in its own last words; empty when it has nothing.

    A check that cannot be made objects: nobody knows that all is well. One that is broken off
    because we are to end says nothing.
    """
    name = os.path.basename(argv[0])
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environ},
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            known = isinstance(problem, OSError) and problem.strerror
            return f"the check {name} cannot be run: {known.lower() if known else problem}"
        deadline = time.monotonic() + patience_sec
        while process.poll() is None and time.monotonic() < deadline:
            if stop.wait(paced(_LOOK_SEC)):
                break
        if process.poll() is None:
            # It is its group's leader and not waited for yet: the number is nobody else's.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            late = f"the check {name} did not end within {patience_sec:g} s"
            return "" if stop.is_set() else late
        if process.returncode == 0:
            return ""
        return f"the check {name} ended with {process.returncode}{_last_words(output)}"


def _last_words(output: IO[bytes]) -> str:
    end = output.seek(0, os.SEEK_END)
    output.seek(max(0, end - _TAIL_BYTES))
    lines = output.read().decode("utf-8", "replace").strip().splitlines()
    return f": {one_line(lines[-1])[:_MOST_WORDS]}" if lines else ""
