"""File locks: a bounded wait, and which process holds one.

The kernel frees the lock of a process that dies, but not that of one that is stopped.
"""

from __future__ import annotations

import fcntl
import os
import time

from mam_core.errors import LockTimeout

#: How long to wait while one and the same process holds a lock.
PATIENCE_SEC = 5.0
_LONGEST_PAUSE_SEC = 0.01


def lock_within(fd: int, path: str, patience_sec: float | None = None) -> None:
    """Take a lock that is held for moments only; raises `LockTimeout` when it is not released."""
    patience_sec = PATIENCE_SEC if patience_sec is None else patience_sec
    deadline = time.monotonic() + patience_sec
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LockTimeout(
                    f"{path} has been locked by {holder_in_words(fd)} for {patience_sec:g} s"
                ) from None
            import random  # only for a process that has to wait

            time.sleep(random.uniform(0, _LONGEST_PAUSE_SEC))  # so that nobody is always too late
        else:
            return


def holder_in_words(fd: int, supposed: str = "") -> str:
    """Who holds the lock of this file; `supposed` is a pid, for kernels that do not say."""
    pid = _kernel_holder(os.fstat(fd)) or supposed
    if not pid:
        return "another process"
    stopped = f", which is stopped (`kill -CONT {pid}`)," if is_stopped(pid) else ""
    return f"pid {pid}{stopped}"


def is_stopped(pid: str) -> bool:
    """Whether Linux shows the process as stopped: it holds its locks until it is continued."""
    try:
        with open(f"/proc/{int(pid)}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, ValueError, IndexError):
        return False


def _kernel_holder(state: os.stat_result) -> str:
    """The pid that the kernel names for a ``flock`` on this file; empty where it names none."""
    want = f"{os.major(state.st_dev):02x}:{os.minor(state.st_dev):02x}:{state.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii") as locks:
            for line in locks:
                words = line.split()
                if words[1] == "FLOCK" and words[5] == want:
                    return words[4]
    except (OSError, IndexError):
        pass
    return ""
