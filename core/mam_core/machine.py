"""What this machine has to give right now: processors, their load, memory, swapping.

Only looked at, never judged: the announcement of a host shows it, and whoever
decides about more or fewer jobs decides by it. ``/proc`` is read here and, for
these things, nowhere else, so that a test brings a machine of its own.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

PROC = "/proc"


class Machine(NamedTuple):
    """One look."""

    cores: int
    load: float  #: processes that wanted a core, averaged over the last minute
    memory_total: int | None  #: bytes; None where the system does not say
    memory_free: int | None  #: what new processes could have without swapping


class Figures(NamedTuple):
    """What a machine did between two looks."""

    cores: int
    cpu: float  #: percent of all cores that was used
    memory: float  #: percent that is not free for new processes
    memory_free: int  #: bytes
    load: float
    swapped: int  #: pages that went out or came in

    def to_dict(self) -> dict[str, Any]:
        return {
            "cores": self.cores,
            "cpu": round(self.cpu, 1),
            "memory": round(self.memory, 1),
            "memory_free": self.memory_free,
            "load": round(self.load, 2),
            "swapped": self.swapped,
        }

    @classmethod
    def from_dict(cls, said: dict[str, Any]) -> Figures:
        """Raises `ValueError`, `KeyError` or `TypeError` for what is none."""
        return cls(
            int(said["cores"]),
            float(said["cpu"]),
            float(said["memory"]),
            int(said["memory_free"]),
            float(said["load"]),
            int(said["swapped"]),
        )


class Gauge:
    """Looks again and again; the first look has nothing to compare with."""

    def __init__(self, proc: str = PROC, cores: int | None = None) -> None:
        self._proc = proc
        self._cores = cores
        self._before: tuple[_Ticks, int] | None = None

    def look(self) -> Figures | None:
        """None at first, and where the system does not tell (macOS)."""
        ticks, swapped = _ticks(self._proc), _swapped(self._proc)
        seen = look(self._proc)
        before, self._before = self._before, None if ticks is None else (ticks, swapped)
        if before is None or ticks is None or not seen.memory_total or seen.memory_free is None:
            return None
        passed = ticks.all - before[0].all
        if passed <= 0:
            return None
        return Figures(
            self._cores or seen.cores,
            100 * (ticks.busy - before[0].busy) / passed,
            100 * (seen.memory_total - seen.memory_free) / seen.memory_total,
            seen.memory_free,
            seen.load,
            max(0, swapped - before[1]),
        )


def look(proc: str = PROC) -> Machine:
    """Where there is no /proc (macOS), without the memory."""
    memory = _memory(os.path.join(proc, "meminfo"))
    return Machine(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        _load(os.path.join(proc, "loadavg")),
        memory.get("MemTotal"),
        memory.get("MemAvailable"),
    )


class _Ticks(NamedTuple):
    """Of all cores together, since boot."""

    busy: int
    all: int


def _ticks(proc: str) -> _Ticks | None:
    try:
        with open(os.path.join(proc, "stat"), encoding="ascii") as file:
            # user nice system idle iowait irq softirq steal; a guest's time is in the first two
            counts = [int(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    if len(counts) < 5:
        return None
    return _Ticks(sum(counts) - counts[3] - counts[4], sum(counts))


def _swapped(proc: str) -> int:
    count = 0
    try:
        with open(os.path.join(proc, "vmstat"), encoding="ascii") as file:
            for line in file:
                if line.startswith(("pswpin ", "pswpout ")):
                    count += int(line.split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return count


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
