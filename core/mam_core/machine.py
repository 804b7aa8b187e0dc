"""What this machine has to give right now: processors, their load, memory.

Only looked at, never judged: the announcement of a host shows it, and whoever
decides about more or fewer jobs decides by it.
"""

from __future__ import annotations

import os
from typing import NamedTuple


class Machine(NamedTuple):
    """One look."""

    cores: int
    load: float  #: processes that wanted a core, averaged over the last minute
    memory_total: int | None  #: bytes; None where the system does not say
    memory_free: int | None  #: what new processes could have without swapping


def look(proc: str = "/proc") -> Machine:
    """Where there is no /proc (macOS), without the memory."""
    memory = _memory(os.path.join(proc, "meminfo"))
    return Machine(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        _load(os.path.join(proc, "loadavg")),
        memory.get("MemTotal"),
        memory.get("MemAvailable"),
    )


def _load(path: str) -> float:
    try:
        with open(path, encoding="ascii") as file:
            return float(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return os.getloadavg()[0]


def _memory(path: str) -> dict[str, int]:
    found: dict[str, int] = {}
    try:
        with open(path, encoding="ascii") as file:
            for line in file:
                name, _, rest = line.partition(":")
                if name in ("MemTotal", "MemAvailable"):
                    found[name] = int(rest.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return {}
    return found
