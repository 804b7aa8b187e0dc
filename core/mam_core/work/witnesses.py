"""What is known about a running job whose worker does not speak: is anything of it left?

Three witnesses: the boot (a host that was started anew has none of its old
processes), the processes (worker and supervisor by pid and start time, the rest
by the attempt's mark) and the lease, which cannot be missed. Nobody is taken for
gone because nobody was seen: a job is lost only where that is known.
"""

from __future__ import annotations

import os
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from mam_core.audit import AuditEvent
from mam_core.audit_base import Audit
from mam_core.clock import Clock, parse_stamp
from mam_core.disk import Folder, is_temp_name
from mam_core.errors import StoreError
from mam_core.record_parts import Lease
from mam_core.records import Job, Status
from mam_core.work.marks import FILE, AttemptMark, is_gone
from mam_core.work.processes import look

ATTEMPTS = "attempts"
#: Beside the output while an attempt runs: what it is asked for, readable by its user alone.
PROMPT = "prompt"


class Witness(StrEnum):
    """Who says that a job is not run any more."""

    BOOT = "boot"  #: its host was started anew
    PROCESSES = "processes"  #: its worker and its supervisor are dead
    LEASE = "lease"  #: nobody renewed it in time
    CLOCK = "clock"  #: a job that nobody supervises has had its time


class Traces(NamedTuple):
    """What an attempt left behind for those who look for it."""

    mark: AttemptMark | None
    words: str = ""  #: why nothing can be concluded from there being no mark


class Node(NamedTuple):
    """Where we look from: processes of another host are not seen from here."""

    name: str
    clock: Clock

    def was_restarted(self, lease: Lease) -> bool:
        """The lease is of this host, before its last boot."""
        return lease.node == self.name and lease.boot_id != self.clock.boot_id()

    def is_stranger(self, lease: Lease) -> bool:
        """The lease is another host's: dated on its clock, or kept in a store that hosts share."""
        is_shared = lease.store_time is not None
        return lease.node != self.name and (is_shared or lease.boot_id != self.clock.boot_id())

    def seems_expired(self, lease: Lease) -> bool:
        """Of another host's lease only its wall clock is known: one more term stands for drift."""
        try:
            renewed = parse_stamp(lease.renewed_at)
        except ValueError:
            return True
        return self.clock.now() - renewed > 2 * lease.ttl_sec

    def is_gone(self, mark: AttemptMark) -> bool | None:
        return is_gone(mark, node=self.name, clock=self.clock)

    def has_lost_worker(self, lease: Lease, mark: AttemptMark | None) -> bool:
        """The worker that holds the lease is dead, and that is known.

        Only beside a mark that was made where we are: a pid says nothing about another PID
        namespace, in which somebody else may have it, or nobody.
        """
        if mark is None or lease.boot_id != self.clock.boot_id():
            return False
        ours = AttemptMark.of(mark.token, mark.supervisor, self.name)
        return mark == ours and self.sees_no_worker(lease)

    def sees_no_worker(self, lease: Lease) -> bool:
        """No process here is the one that the lease names; a lease of a script names none."""
        worker = _worker_of(lease)
        if worker is None or lease.node != self.name:
            return False
        pid, started = worker
        process = look(pid)
        return process is None or process.started != started


def traces_of(audit: Audit, job: Job) -> Traces:
    """The mark of the running attempt, or why it is not known whether there should be one.

    It is looked for where the lease says that its worker keeps it: a store in a database may be
    used from several folders of one host, each with a log of its own.
    """
    ours = audit.path
    place = job.lease.logs if job.lease is not None and job.lease.logs else ours
    try:
        with (
            Folder.open(place) as root,
            root.subfolder(job.job_id) as log,
            log.subfolder(ATTEMPTS) as attempts,
            attempts.subfolder(str(job.attempt)) as folder,
        ):
            if place != ours:
                folder.check_owner()  # a record must not make us end whatever somebody wrote down
            mark = AttemptMark.read(folder)
            if mark is None and folder.has(FILE):
                return Traces(None, "the mark of its processes cannot be read")
    except FileNotFoundError:
        mark = None
    except (OSError, StoreError) as problem:
        return Traces(None, f"its log cannot be read: {problem}")
    if mark is None and place != ours and not os.path.isdir(place):
        return Traces(
            None, f"its worker keeps its log at {place}, which does not exist on this host"
        )
    if mark is None and place == ours and not _tells_of(audit, job):
        # With another DELEGATE_JOB_LOGS_DIR the worker's marks are not where we look.
        return Traces(None, "its worker keeps another log, so its processes are not known here")
    return Traces(mark)


def tidy_attempt(folder: Folder) -> None:
    """What an attempt that was killed could not take away: its prompt, and files half written."""
    for name in folder.names():
        if name == PROMPT or is_temp_name(name):
            folder.remove(name)


def tidy(audit: Audit, job: Job) -> None:
    """The same for an attempt that is known to be gone. What cannot be removed is the doctor's."""
    with (
        suppress(OSError, StoreError),
        Folder.open(audit.path) as root,
        root.subfolder(job.job_id) as log,
        log.subfolder(ATTEMPTS) as attempts,
        attempts.subfolder(str(job.attempt)) as folder,
    ):
        tidy_attempt(folder)


def _tells_of(audit: Audit, job: Job) -> bool:
    """This log is the one that the claim of the running attempt was written to."""
    return any(
        line.get("event") == AuditEvent.STATUS_CHANGED
        and line.get("attempt") == job.attempt
        and line.get("to") == Status.RUNNING
        for line in audit.events(job.job_id)
    )


def _worker_of(lease: Lease) -> tuple[int, str] | None:
    """Pid and start time out of ``<node>:<pid>:<start time>:<slot>``; a time may have colons."""
    _, _, rest = lease.owner.partition(":")
    pid, _, rest = rest.partition(":")
    started, _, slot = rest.rpartition(":")
    if not (pid.isdecimal() and slot.isdecimal() and started):
        return None
    return int(pid), started
