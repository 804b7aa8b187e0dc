"""Asking a program one harmless question, with a limit on the wait and on the answer."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from mam_core.safe_text import one_line

PATIENCE_SEC = 10.0
#: More than any version has; the rest is somebody's banner.
_MAX_BYTES = 4096


def told_by(command: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """The first line that it says on standard output, harmless; empty when it fails or is late.

    It runs in a group of its own, which is ended with it: a launcher may leave children behind.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C", **(env or {})},
            start_new_session=True,
        )
    except OSError:
        return ""
    with process:
        said = _answer(process, time.monotonic() + PATIENCE_SEC)
    lines = said.decode(errors="replace").strip().splitlines()
    return one_line(lines[0]) if lines else ""


def _answer(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    """What it says, if it then ends well and in time."""
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    said = b""
    try:
        while len(said) < _MAX_BYTES:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([pipe], [], [], left)[0]:
                return b""
            data = os.read(pipe, _MAX_BYTES)
            if not data:
                code = process.wait(max(0.0, deadline - time.monotonic()))
                return said if code == 0 else b""
            said += data
    except subprocess.TimeoutExpired:
        return b""
    finally:
        if process.poll() is None:  # not waited for yet, so that the group's number is its own
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
    return b""
