"""Holds the lock of a dispatch registry on this host while another host reads and replaces it.

Sent as text to ``python3 -`` of a host that need not have mam, so it imports nothing
of ours and runs with any Python 3.6. It says one line when it has the lock, with the
file's path and whether its text is in our layout, then waits for a line: ``rename
TEMP`` puts a file that was brought meanwhile in place, anything else changes nothing.
It never holds the lock longer than its limit, whatever becomes of whoever asked.
"""

import contextlib
import fcntl
import json
import os
import select
import sys
import time

HOLDER = 11


def main(path: str, wait_sec: float, hold_sec: float) -> None:
    path = os.path.realpath(os.path.expanduser(path))
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        say(error="there is no folder " + folder)
        return
    lock = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not is_ours(lock, wait_sec):
        say(error=f"{path}.lock has been held by another for {wait_sec:g} s")
        return
    os.pwrite(lock, b"%10d " % os.getpid(), 0)
    temp = os.path.join(folder, f".{name}.{os.urandom(4).hex()}.tmp")
    try:
        held(lock, path, temp, hold_sec)
    finally:
        with contextlib.suppress(FileNotFoundError):  # it became the file
            os.unlink(temp)
        os.pwrite(lock, b" " * HOLDER, 0)


def is_ours(lock: int, wait_sec: float) -> bool:
    deadline = time.monotonic() + wait_sec
    while time.monotonic() < deadline:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return True
    return False


def held(lock: int, path: str, temp: str, hold_sec: float) -> None:
    exists = os.path.exists(path)
    sealed = exists and os.pread(lock, 200, HOLDER) == seal(os.stat(path))
    say(path=path, temp=temp, sealed=sealed, exists=exists)
    if not select.select([0], [], [], hold_sec)[0]:
        say(error=f"it took longer than {hold_sec:g} s, and nothing was changed")
        return
    if os.read(0, 100).strip() != b"rename":
        return
    fd = os.open(temp, os.O_RDWR)
    os.fchmod(fd, 0o600)
    os.fsync(fd)
    os.replace(temp, path)
    data = seal(os.fstat(fd))
    os.pwrite(lock, data, HOLDER)
    os.ftruncate(lock, HOLDER + len(data))
    say(done=True)


def seal(state: os.stat_result) -> bytes:
    return b"%d %d %d %d\n" % (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


def say(**words: object) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
