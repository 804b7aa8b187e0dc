"""Submissions: whoever runs a job of its own holds a lock for as long as it does.

The label of such a job is served by one process and by nobody else. If that
process is killed, its job would wait for ever: the kernel frees the lock, and the
sweep of any other process cancels the job. A lock and no pid: it is known across
PID namespaces, and a boot forgets it.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mam_core.disk import Folder
from mam_core.errors import MamError
from mam_core.file_lock import lock_within
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query

FOLDER = ".submissions"

_PREFIX = "submit:"
_NAME = re.compile(r"[0-9a-f]{8}")
_LIVE = frozenset({Status.PENDING, Status.RUNNING})
_WHY = "its submission has ended, and nobody else serves its label"


def new_label() -> str:
    """A label that nobody else has."""
    return f"{_PREFIX}{secrets.token_hex(4)}"


@contextmanager
def serving(registry: Registry, registry_path: str, label: str) -> Iterator[None]:
    """While the block lasts we are the one who serves `label`: entered before its job is there.

    A job of it that is still pending afterwards is cancelled, by us or by a sweep.
    """
    name = label.removeprefix(_PREFIX)
    with registry.store.transaction(create=True):
        pass  # a folder of other things is refused before we put anything into it
    with Folder.open(registry_path) as home, home.subfolder(FOLDER, create=True) as folder:
        fd = _held(folder, name)
        try:
            yield
        finally:
            os.close(fd)
            with suppress(OSError, MamError):  # the next sweep does it
                _abandoned(registry, folder, name)


def cancel_abandoned(registry: Registry, registry_path: str) -> list[Job]:
    """Cancel the pending jobs whose submission is gone; costs next to nothing when there is none.

    One that runs has a lease, and is looked at again when that has been given up.
    """
    try:
        with Folder.open(registry_path) as home, home.subfolder(FOLDER) as folder:
            names = [name for name in folder.names() if _NAME.fullmatch(name)]
            return [job for name in names for job in _abandoned(registry, folder, name)]
    except FileNotFoundError:
        return []


def _held(folder: Folder, name: str) -> int:
    """The lock of a new submission: its file is still the one that others will look at."""
    while True:
        fd = folder.open_in_place(name, os.O_RDWR)
        try:
            lock_within(fd, f"{folder.path}/{name}")
        except BaseException:
            os.close(fd)
            raise
        if os.fstat(fd).st_nlink:
            return fd
        os.close(fd)  # a sweep took it for one that was left behind


def _abandoned(registry: Registry, folder: Folder, name: str) -> list[Job]:
    """The jobs of one submission that were cancelled. Its file goes with the last of them, so that
    a person who takes up such a job again is not in the way of the next sweep."""
    try:
        fd, _ = folder.open_file(name)
    except FileNotFoundError:
        return []  # another sweep was first
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return []  # somebody is there
        found = registry.store.find(Query(_LIVE, agent_session=_PREFIX + name))[0]
        waiting = [job.job_id for job in found if job.status is Status.PENDING]
        after = [registry.request_cancel(job_id, _WHY) for job_id in waiting]
        if len(waiting) == len(found) and all(job.is_ended for job in after):
            folder.remove(name)
        return [job for job in after if job.is_ended]
    finally:
        os.close(fd)
