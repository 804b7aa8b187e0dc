"""Processes as the kernel knows them: who is whose child, who carries an attempt's mark.

A process is named by its pid and its start time; nothing is signalled that does
not match both, and where the kernel has pidfds the pid cannot change hands
between the look and the signal. The supervisor imports this at the start of
every job: only modules in C, no typing, no enum.

An attempt is marked twice. Its token stands in the environment, which a process
can scrub; and in a limit on the time of real-time tasks, so high that it limits
nobody, which every descendant inherits, nobody can raise again without
privilege, and the kernel shows for every process.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` itself costs 6 ms of enum
import os
import resource
import sys

TOKEN_VARIABLE = "MAM_ATTEMPT_TOKEN"
HAS_PROC = sys.platform == "linux"

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_SEC = os.sysconf("SC_CLK_TCK")

#: The part of the limit that is the token's; above it stands the depth of attempts in attempts.
_LIMIT_BITS = 57
_LIMIT_DEPTH = 15
_TOKEN_DIGITS = 14


class Process:
    """One living process, as it was when we looked."""

    __slots__ = ("cpu_sec", "memory", "parent", "pid", "started")

    def __init__(self, pid: int, parent: int, started: str, cpu_sec: float, memory: int) -> None:
        self.pid = pid
        self.parent = parent
        self.started = started
        self.cpu_sec = cpu_sec  #: its own, and that of the children that it has waited for
        self.memory = memory  #: resident bytes

    @property
    def name(self) -> tuple[int, str]:
        """What tells it from every other process of this boot."""
        return self.pid, self.started

    def send(self, number: int) -> bool:
        """Signal this process and no other; False when it is gone or not ours to signal."""
        return send(self.pid, self.started, number)


def look(pid: int) -> Process | None:
    """A living process; a zombie is none."""
    if not HAS_PROC:
        from mam_core.work.processes_ps import everyone

        return next((one for one in everyone() if one.pid == pid), None)
    return _parse(pid, read_fact(pid, "stat"))


def everybody() -> list[Process]:
    """Every living process that can be seen."""
    if not HAS_PROC:
        from mam_core.work.processes_ps import everyone

        return everyone()
    found = (_parse(pid, read_fact(pid, "stat")) for pid in pids())
    return [process for process in found if process is not None]


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read_fact(pid: int, name: str) -> bytes:
    """A file of ``/proc/<pid>``; empty when it is gone, or not ours to read."""
    try:
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        data = part = os.read(fd, 65536)
        while len(part) > 4095:  # the kernel hands out a page or more while there is more
            part = os.read(fd, 65536)
            data += part
        return data
    except OSError:
        return b""
    finally:
        os.close(fd)


def descendants(roots: set[int], everyone: list[Process]) -> list[Process]:
    """Those below `roots`, parents first, without the roots."""
    children: dict[int, list[Process]] = {}
    for process in everyone:
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    seen = set(roots)
    waiting = list(roots)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child.pid not in seen:
                seen.add(child.pid)
                waiting.append(child.pid)
                found.append(child)
    return found


def ancestors(pid: int, everyone: list[Process]) -> set[int]:
    """`pid` and those above it."""
    parents = {process.pid: process.parent for process in everyone}
    line = {pid}
    while (pid := parents.get(pid, 0)) and pid not in line:
        line.add(pid)
    return line


def send(pid: int, started: str, number: int) -> bool:
    """Signal the process of that pid and start time and no other; False when that failed."""
    try:
        fd = open_pidfd(pid)
        try:
            now = look(pid)
            if now is None or now.started != started:
                return False
            if fd is None:
                os.kill(pid, number)
            else:
                _signal.pidfd_send_signal(fd, number)
            return True
        finally:
            if fd is not None:
                os.close(fd)
    except OSError:
        return False


def open_pidfd(pid: int) -> int | None:
    """A pidfd; None where the kernel, or a container's filter, has none."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:
        return None


def carriers(token: str, everyone: list[Process]) -> list[Process]:
    """Those of `everyone` that carry the mark of an attempt, in either of the two ways."""
    if not HAS_PROC:
        from mam_core.work.processes_ps import with_variable

        marked = with_variable(f"{TOKEN_VARIABLE}={token}")
        return [process for process in everyone if process.pid in marked]
    entry = b"\0%s=%s\0" % (TOKEN_VARIABLE.encode(), token.encode())
    number = number_of(token)
    return [
        process
        for process in everyone
        if entry in b"\0" + read_fact(process.pid, "environ") + b"\0"
        or _carries(process.pid, number)
    ]


def put_on_mark(token: str) -> bool:
    """Mark this process and all that it will ever start; False where the kernel has no room."""
    kind = getattr(resource, "RLIMIT_RTTIME", None)
    if kind is None:
        return False
    _, hard = resource.getrlimit(kind)
    depth = _LIMIT_DEPTH if hard == resource.RLIM_INFINITY else (hard >> _LIMIT_BITS) - 1
    if depth < 1:
        return False
    value = (depth << _LIMIT_BITS) + number_of(token)
    try:
        resource.setrlimit(kind, (value, value))
    except (OSError, ValueError):
        return False
    return True


def number_of(token: str) -> int:
    """What of a token stands in the limit."""
    return int(token[:_TOKEN_DIGITS], 16)


def number_on(pid: int) -> int | None:
    """The number that the kernel shows on a process; None: it was never marked."""
    _, found, line = read_fact(pid, "limits").partition(b"Max realtime timeout")
    words = line.split(None, 2)
    if not found or len(words) < 2 or not words[1].isdigit():
        return None
    depth, number = divmod(int(words[1]), 1 << _LIMIT_BITS)
    return number if depth else None  # somebody else's limit is lower than any of ours


def _carries(pid: int, number: int) -> bool:
    return number_on(pid) == number


def _parse(pid: int, stat: bytes) -> Process | None:
    # The name in parentheses may hold anything, blanks and parentheses too.
    fields = stat.rpartition(b")")[2].split()
    if len(fields) < 22 or fields[0] == b"X":
        return None
    if fields[0] == b"Z" and int(fields[17]) < 2:
        return None  # with more threads only its first one has ended
    cpu_sec = sum(int(field) for field in fields[11:15]) / _TICKS_PER_SEC
    memory = int(fields[21]) * _PAGE
    return Process(pid, int(fields[1]), fields[19].decode("ascii"), cpu_sec, memory)
