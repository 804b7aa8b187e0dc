"""The same facts about processes where there is no /proc (macOS): what `ps` says.

A process can be told from its successor to the second only, there are no
pidfds, and the mark in a limit does not exist; `limits_probe` says so.
"""

from __future__ import annotations

import subprocess

from mam_core.work.processes import Process


def everyone() -> list[Process]:
    lines = _ask("-axo", "pid=,ppid=,stat=,rss=,time=,lstart=")
    found = (_parse(line) for line in lines)
    return [process for process in found if process is not None]


def with_variable(entry: str) -> set[int]:
    """The pids of our own processes that have this entry in their environment."""
    marked = set()
    for line in _ask("-axEwwo", "pid=,command="):
        words = line.split()
        if entry in words[1:]:
            marked.add(int(words[0]))
    return marked


def _ask(*options: str) -> list[str]:
    try:
        answer = subprocess.run(
            ["ps", *options], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return answer.stdout.splitlines()


def _parse(line: str) -> Process | None:
    fields = line.split(None, 5)
    if len(fields) < 6 or fields[2].startswith("Z"):
        return None
    pid, parent, _, kilobytes, time, started = fields
    return Process(int(pid), int(parent), started.strip(), _seconds(time), int(kilobytes) * 1024)


def _seconds(time: str) -> float:
    """``[[dd-]hh:]mm:ss.cc``"""
    days, _, rest = time.rpartition("-")
    seconds = 0.0
    for part in rest.split(":"):
        seconds = seconds * 60 + float(part)
    return seconds + int(days or 0) * 86400
