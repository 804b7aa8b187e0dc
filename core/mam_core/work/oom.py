"""Did the kernel kill for want of memory? It counts, for the whole machine, and anyone may read it.

A count that rose while an agent ran, and an agent that was killed with 9 or says
137, are together good evidence; each alone is not.
"""

from __future__ import annotations

import os


def kernel_kills() -> int:
    """How often since boot; 0 where it is not told."""
    try:
        fd = os.open("/proc/vmstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        data = b""
        while part := os.read(fd, 65536):
            data += part
    finally:
        os.close(fd)
    _, found, rest = data.partition(b"\noom_kill ")
    return int(rest.split(None, 1)[0]) if found else 0
