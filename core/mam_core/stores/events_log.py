"""``<job_id>.events.log``: the events of one job as JSON lines, for a person who debugs.

Written only where ``[store] events_log`` asks for it, and read by nobody here: it may be
deleted at any time. The audit log has the same events and more.
"""

from __future__ import annotations

import os
from contextlib import suppress

from mam_core.audit import warn
from mam_core.disk import Folder, write_all
from mam_core.errors import MamError
from mam_core.records import check_job_id

#: A file that has grown beyond this loses its older half.
MAX_BYTES = 4 * 1024 * 1024


def log_name(job_id: str) -> str:
    return f"{check_job_id(job_id)}.events.log"


def append_event(folder: Folder, job_id: str, payload: bytes) -> None:
    """One line; a failure is a warning, and leaves no half of it."""
    try:
        fd = folder.open_in_place(log_name(job_id), os.O_RDWR | os.O_APPEND)
    except (OSError, MamError) as problem:
        warn(f"the events log of job {job_id} cannot be opened: {problem}")
        return
    size = os.fstat(fd).st_size
    try:
        if size > MAX_BYTES:
            size = _cut(fd, size)
        write_all(fd, payload + b"\n")
    except OSError as problem:
        with suppress(OSError):
            os.ftruncate(fd, size)
        warn(f"the events log of job {job_id} misses an event: {problem}")
    finally:
        os.close(fd)


def _cut(fd: int, size: int) -> int:
    kept = os.pread(fd, MAX_BYTES // 2, size - MAX_BYTES // 2).partition(b"\n")[2]
    os.ftruncate(fd, 0)
    write_all(fd, kept)
    return len(kept)
