"""Which process a pid file means: a pid alone is somebody else's sooner or later.

Pid, start time and boot together name one process for ever. Nothing is ever
signalled that does not match all three.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from mam_core.clock import SystemClock
from mam_core.work.processes import HAS_PROC, open_pidfd

#: The kernel's number for the one PID namespace from which every process is seen.
FIRST_NAMESPACE = 0xEFFFFFFC


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """One process of one boot."""

    pid: int
    started: str
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> ProcessMark | None:
        """The mark of a living process; None when there is none (a zombie is none)."""
        started = _start_time(pid)
        return cls(pid, started, SystemClock().boot_id()) if started else None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ProcessMark:
        """Raises KeyError, TypeError or ValueError for anything else than `to_dict` makes."""
        return cls(int(data["pid"]), str(data["started"]), str(data["boot_id"]))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_alive(self) -> bool:
        return self.pid > 0 and ProcessMark.of(self.pid) == self

    def send(self, number: signal.Signals) -> bool:
        """Signal this process and no other; False when it is gone.

        Where the kernel has pidfds, the pid cannot change hands between look and signal.
        """
        with suppress(ProcessLookupError):
            fd = open_pidfd(self.pid)
            if fd is None:
                if self.is_alive:
                    os.kill(self.pid, number)
                    return True
                return False
            try:
                if self.is_alive:
                    signal.pidfd_send_signal(fd, number)
                    return True
            finally:
                os.close(fd)
        return False


def _start_time(pid: int) -> str:
    """Empty when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything, blanks and parentheses too.
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "" if os.path.exists("/proc/self/stat") else _start_time_by_ps(pid)
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")


def _start_time_by_ps(pid: int) -> str:
    """Where there is no /proc (macOS)."""
    import subprocess

    asked = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    state, _, started = answer.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else started.strip()


def pid_namespace() -> int:
    """The number of our PID namespace; 0 where there are none."""
    if not HAS_PROC:
        return 0
    try:
        return int(os.readlink("/proc/self/ns/pid")[5:-1])
    except (OSError, ValueError):
        return 0


def is_out_of_view(namespace: int) -> bool:
    """Whether a process that has its pid in `namespace` (0: not known) lives cannot be seen from
    here, as from inside an agent's own namespace."""
    return namespace != 0 and pid_namespace() not in (namespace, FIRST_NAMESPACE)
