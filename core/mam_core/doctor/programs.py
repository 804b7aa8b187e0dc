"""Asking a program one harmless question, with a limit on the wait."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

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
    try:
        said = process.communicate(timeout=PATIENCE_SEC)[0]
    except subprocess.TimeoutExpired:
        _end(process)
        return ""
    if process.returncode != 0:
        return ""
    lines = said[:_MAX_BYTES].decode(errors="replace").strip().splitlines()
    return one_line(lines[0]) if lines else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Its leader is not yet waited for, so that the group's number is still its own."""
    import signal

    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        process.kill()
    process.communicate()
