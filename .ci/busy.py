"""Keep cores or the disk busy beside a gate, to find tests that need a quiet machine.

python .ci/busy.py cores | disk     until it is killed or its parent exits
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable


def keep_a_core_busy() -> None:
    for _ in range(1_000_000):
        pass


def sync_a_file() -> None:
    with tempfile.TemporaryFile(dir=os.curdir) as file:  # has no name, so a kill leaves none
        for _ in range(20):
            file.write(os.urandom(1 << 16))
            file.flush()
            os.fsync(file.fileno())


def main(kind: str) -> None:
    work: Callable[[], None]
    work, processes = {
        "cores": (keep_a_core_busy, os.cpu_count() or 1),
        "disk": (sync_a_file, 2),
    }[kind]
    parent = os.getppid()
    for _ in range(processes - 1):
        if os.fork() == 0:
            parent = os.getppid()
            break
    while os.getppid() == parent:
        work()


if __name__ == "__main__":
    main(sys.argv[1])
