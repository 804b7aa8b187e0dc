"""SIGSTOP for a process that uses a registry, at a moment when it keeps nobody else waiting."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

from mam_core.work.processes import read_fact
from tests.support.patience import eventually


def stop(pid: int, registry: Path) -> None:
    """Stopped, but not while it holds the registry's lock: then everybody would wait for it."""

    def is_stopped() -> bool:
        os.kill(pid, signal.SIGSTOP)
        # The signal is there; the process stops with its next step.
        eventually(lambda: _has_stopped(pid), "it has stopped")
        with (registry / ".lock").open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                os.kill(pid, signal.SIGCONT)
                return False
        return True

    eventually(is_stopped, "it is stopped outside of the lock")


def _has_stopped(pid: int) -> bool:
    """All of its threads have: each of them may be the one that takes a lock."""
    stats = [read_fact(pid, f"task/{one}/stat") for one in os.listdir(f"/proc/{pid}/task")]
    return all(stat.rpartition(b")")[2].split()[:1] == [b"T"] for stat in stats)
