"""The audit log: what happened to each job, kept after the registry forgets it.

``<folder>/<job_id>/`` holds ``meta.json`` (the record as registered, without its
secrets), ``events.ndjson`` (one line per event, numbered 1..n) and
``status.json``. Writers are best effort and isolated: a failure is a warning,
never the end of the change that it shadows. A repair of the log is itself a
line in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from mam_core import codec
from mam_core.audit_lines import (
    EVENTS,
    REPAIRED,
    PublishedLines,
    append_lines,
    newest,
    numbered,
    published_seq,
    revision_of,
    same_line,
)
from mam_core.disk import Folder, write_all
from mam_core.errors import MamError, UnreadableRecord, UnsafePath
from mam_core.records import Job, Status, check_job_id

if TYPE_CHECKING:
    from mam_core.replay.reading import FolderLogs

META = "meta.json"
STATUS = "status.json"

#: Room for the longest job id.
_STATUS_WIDTH = 192


class AuditEvent(StrEnum):
    """The kinds of lines; the first four are the documents'."""

    REGISTERED = "registered"
    STATUS_CHANGED = "status_changed"
    PUBLISHED = "published"
    RECEIVED = "received"
    CANCEL_REQUESTED = "cancel_requested"
    LEASED = "leased"
    EDITED = "edited"
    ATTEMPT_STARTED = "attempt_started"
    ATTEMPT_ENDED = "attempt_ended"
    PROMPT_DELIVERY = "prompt_delivery"  #: to a live agent: typed, submitted, accepted
    MESSAGE_SENT = "message_sent"  #: to the agent, by a person
    MESSAGE_RECEIPT = "message_receipt"  #: how far it has come
    STALE = "stale"  #: a sweep found its lease expired, and its processes not gone
    VERIFIED = "verified"
    ARCHIVED = "archived"
    RESTORED = "restored"
    REFUSED = "refused"
    LOG_REPAIRED = REPAIRED


class AuditLine(NamedTuple):
    """One line to be written; `revision` is that of the record it tells about, if any."""

    event: str
    timestamp: str
    fields: dict[str, Any]
    revision: int | None = None

    def to_dict(self, job_id: str) -> dict[str, Any]:
        line: dict[str, Any] = {"timestamp": self.timestamp, "event": self.event, "job_id": job_id}
        if self.revision is not None:
            line["revision"] = self.revision
        line.update(self.fields)
        return line


class AuditLog:
    """The folder of all jobs' histories. Methods that write never raise; they warn."""

    kept_as = "history"

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._root: Folder | None = None
        #: Also a root that was replaced: another thread may be at work in it.
        self._opened = ExitStack()

    def close(self) -> None:
        self._root = None
        self._opened.close()

    # -- writing ---------------------------------------------------------------------------

    def begin(
        self,
        job: Job,
        line: dict[str, Any],
        *,
        meta: dict[str, Any] | None = None,
        record: bytes | None = None,
    ) -> bool:
        """A job's first line, with its ``meta.json`` and ``status.json``; True when all stand.

        `record` is what the job's file holds; without secrets in it that is ``meta.json``, too.
        """
        try:
            folder = self._open_root(create=True).make_subfolder(check_job_id(job.job_id))
        except (OSError, MamError) as problem:
            warn(f"the audit log of job {job.job_id} cannot be opened: {_words(problem)}")
            return False
        if folder is None:
            return self._write(job.job_id, line, job=job, meta=meta or job.redacted())
        with folder:  # made this moment: nobody else knows it, so there is nothing to look out for
            if record is None or meta is not None or job.has_secrets:
                record = codec.dumps(meta or job.redacted())
            done = _attempt(job.job_id, META, lambda: folder.put_new(META, record))
            done &= _attempt(job.job_id, STATUS, lambda: folder.put_new(STATUS, _status(job)))
            done &= _attempt(job.job_id, EVENTS, lambda: folder.put_new(EVENTS, numbered(1, line)))
            return done

    def append(self, job_id: str, line: dict[str, Any], job: Job | None = None) -> bool:
        """One more line, and the new ``status.json`` when `job` is given."""
        return self._write(job_id, line, job=job)

    def set_status(self, job: Job, *, meta: dict[str, Any] | None = None) -> bool:
        """What goes with a line that is already told: it may have failed on its own."""
        return self._write(job.job_id, None, job=job, meta=meta)

    def _write(
        self,
        job_id: str,
        line: dict[str, Any] | None,
        *,
        job: Job | None = None,
        meta: dict[str, Any] | None = None,
    ) -> bool:
        try:
            folder = self._open_job(job_id, create=True)
        except (OSError, MamError) as problem:
            warn(f"the audit log of job {job_id} cannot be opened: {_words(problem)}")
            return False
        with folder:
            done = True
            if meta is not None:
                done &= _attempt(job_id, META, lambda: _write_meta(folder, meta))
            if job is not None:
                done &= _attempt(job_id, STATUS, lambda: _write_status(folder, job))
            # Last: where the line stands, a killed process has written the rest, too.
            if line is not None:
                done &= _attempt(job_id, EVENTS, lambda: append_lines(folder, [line]))
            return done

    def append_all(self, job_id: str, lines: Sequence[dict[str, Any]]) -> bool:
        """Several lines at the price of one; on a failure some of them may stand."""
        try:
            with self._open_job(job_id, create=True) as folder:
                return _attempt(job_id, EVENTS, lambda: append_lines(folder, lines))
        except (OSError, MamError) as problem:
            warn(f"the audit log of job {job_id} cannot be opened: {_words(problem)}")
            return False

    # -- reading ---------------------------------------------------------------------------

    def meta(self, job_id: str) -> dict[str, Any] | None:
        return self._read_json(job_id, META)

    def status(self, job_id: str) -> dict[str, Any] | None:
        return self._read_json(job_id, STATUS)

    def lines(self, job_id: str) -> Iterator[bytes]:
        """The lines as they are stored; nothing for a job that is not logged."""
        try:
            folder = self._open_job(job_id)
        except (FileNotFoundError, UnsafePath):
            return
        with folder:
            try:
                fd, _ = folder.open_file(EVENTS)
            except (OSError, UnsafePath):
                return
            with os.fdopen(fd, "rb") as file:
                yield from file

    def events(self, job_id: str) -> Iterator[dict[str, Any]]:
        """The lines parsed; one that is torn or no JSON object is skipped."""
        for raw in self.lines(job_id):
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, dict):
                yield line

    def news(self, job_id: str, since: int | None, reach: int) -> tuple[int, list[bytes]]:
        """The whole lines after byte `since`, or of the last `reach` bytes, and where they end.

        A log that became shorter, or grew by more than that, is read as a new one.
        """
        try:
            with self._open_job(job_id) as folder:
                fd, _ = folder.open_file(EVENTS)
        except (OSError, MamError):
            return 0, []
        try:
            size = os.fstat(fd).st_size
            if since == size:
                return size, []
            begin = since if since is not None and size - reach <= since < size else None
            start = max(0, size - reach) if begin is None else begin
            whole, newline, _ = os.pread(fd, size - start, start).rpartition(b"\n")
        finally:
            os.close(fd)
        lines = whole.split(b"\n") if newline else []
        # The first line of a tail is cut by the tail itself, unless it begins the file.
        return start + len(whole) + len(newline), lines[1:] if begin is None and start else lines

    def has(self, job_id: str) -> bool:
        return os.path.isdir(os.path.join(self.path, check_job_id(job_id)))

    def job_ids(self) -> list[str]:
        """Every job that ever was logged here, oldest log first."""
        found = []
        try:
            with os.scandir(self.path) as listing:
                entries = list(listing)
        except OSError:
            return []
        for entry in entries:
            try:
                check_job_id(entry.name)
                if entry.is_dir(follow_symlinks=False):
                    found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
            except (MamError, OSError):
                continue
        return [name for _, name in sorted(found)]

    def tells(self, job_id: str, line: dict[str, Any]) -> bool:
        """This line, or one of a later revision of the record, is already there."""
        if "revision" in line:
            return self.last_revision(job_id) >= int(line["revision"])
        return bool(self._search(job_id, lambda raw: same_line(raw, line)))

    def last_revision(self, job_id: str) -> int:
        """The revision of the newest line that tells about the record; 0 when there is none."""
        return self._search(job_id, revision_of)

    def published_since(self, job_id: str, seq: int) -> set[int]:
        """The numbers from `seq` on of events that a line says were published."""
        told: set[int] = set()

        def collect(raw: bytes) -> int | None:
            number = published_seq(raw)
            if number is not None and number >= seq:
                told.add(number)
                return None
            return number  # a relay goes by the numbers: before this one there is none of them

        self._search(job_id, collect)
        return told

    def published(self, job_id: str, seqs: Collection[int]) -> dict[int, bytes]:
        found = PublishedLines(seqs)
        self._search(job_id, lambda raw: 1 if found.is_done(raw) else None)
        return found.lines

    def logs(self) -> FolderLogs:
        from mam_core.replay.reading import FolderLogs

        return FolderLogs(self.path)

    def _search(self, job_id: str, pick: Callable[[bytes], int | None]) -> int:
        try:
            with self._open_job(job_id) as folder:
                fd, _ = folder.open_file(EVENTS)
        except (OSError, MamError):
            return 0
        try:
            return newest(fd, pick)[0]
        finally:
            os.close(fd)

    def _open_job(self, job_id: str, *, create: bool = False) -> Folder:
        """A job's folder; raises FileNotFoundError when there is none and none is to be made."""
        check_job_id(job_id)
        if self._root is not None:
            # A folder that stands needs no look at the root; one that does not may have moved.
            try:
                return self._root.subfolder(job_id)
            except FileNotFoundError:
                pass
        return self._open_root(create=create).subfolder(job_id, create=create)

    def _open_root(self, *, create: bool = False) -> Folder:
        if self._root is None or not self._root.is_present():
            self._root = self._opened.enter_context(Folder.open(self.path, create=create))
        return self._root

    def _read_json(self, job_id: str, name: str) -> dict[str, Any] | None:
        try:
            with self._open_job(job_id) as folder:
                data, _ = folder.read(name, codec.MAX_RECORD_BYTES)
            return codec.loads(data)
        except (OSError, MamError):
            return None


def warn(message: str) -> None:
    """One warning through `logging`, which costs a third of a claim's start-up to import."""
    import logging

    logging.getLogger("mam").warning(message)


def _words(problem: Exception) -> str:
    known = isinstance(problem, OSError) and problem.strerror
    return known.lower() if known else str(problem)


def _attempt(job_id: str, what: str, write: Callable[[], None]) -> bool:
    try:
        write()
    except (OSError, MamError, TypeError, ValueError) as problem:
        warn(f"the audit log of job {job_id} misses a line: {what}: {_words(problem)}")
        return False
    return True


def _write_meta(folder: Folder, meta: dict[str, Any]) -> None:
    """The record as registered, once; half of one, left by a killed process, is written anew."""
    try:
        codec.loads(folder.read(META, codec.MAX_RECORD_BYTES)[0])
    except (FileNotFoundError, UnreadableRecord):
        _overwrite(folder, META, codec.dumps(meta))


def _write_status(folder: Folder, job: Job) -> None:
    """In place, by one write of a fixed width: a reader finds the old or the new line whole.

    A replaced file would cost each claim a second new inode, which is half of its time on a busy
    disk; and what is said here stands in the record, too.
    """
    _overwrite(folder, STATUS, _status(job))


def _status(job: Job) -> bytes:
    status = {"job_id": job.job_id, "status": job.status, "updated_at": job.updated_at}
    return codec.dumps_line(status).rstrip().ljust(_STATUS_WIDTH - 1) + b"\n"


def _overwrite(folder: Folder, name: str, data: bytes) -> None:
    fd = folder.open_in_place(name, os.O_WRONLY)
    try:
        write_all(fd, data)
        if os.fstat(fd).st_size > len(data):
            os.ftruncate(fd, len(data))
    finally:
        os.close(fd)


def status_of(data: dict[str, Any] | None) -> Status | None:
    """The status in a ``status.json``; None when there is none to be had."""
    try:
        return Status(data["status"]) if data else None
    except (KeyError, ValueError):
        return None
