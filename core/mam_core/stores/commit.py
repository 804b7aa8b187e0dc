"""How a transaction of the files store becomes true, whatever dies on the way.

Prepare every file under a temp name and sync it; write the intent; rename; tell
the audit log; wipe the intent. Killed before the intent, nothing has happened;
killed after it, the next holder of the lock goes on from there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mam_core.audit import AuditEvent, AuditLog, warn
from mam_core.disk import Folder, is_temp_name, sync_fd, temp_name
from mam_core.errors import MamError
from mam_core.records import Job
from mam_core.stores.base import Progress
from mam_core.stores.catalogue import RECORD_SUFFIX, Sight, Written, read_job, record_name
from mam_core.stores.journal import Intent, Journal

#: The folder of events that wait for a broker.
OUTBOX = ".outbox"

#: From here on one sync of the whole file system is cheaper than one per file.
BULK = 16

_META = "meta"

Line = tuple[str, dict[str, Any]]


class Batch:
    """What a transaction wants to be true at its end."""

    def __init__(self) -> None:
        self.writes: dict[str, bytes] = {}  #: file name to content
        self.posts: dict[str, bytes] = {}  #: the same, in the outbox: never synced
        self.fresh: set[str] = set()  #: names that must not exist before
        self.before: dict[str, bytes | None] = {}  #: what stood in some of them; None: nothing
        self.moves: list[tuple[str, str]] = []  #: into the archive and back
        self.events: list[tuple[str, bytes]] = []  #: payloads for the jobs' events logs
        self.lines: list[Line] = []  #: audit lines of these changes
        self.notes: list[Line] = []  #: audit lines that no change hangs on
        self.jobs: dict[str, Job] = {}
        self.removed: list[str] = []
        self.restored: list[Written] = []
        self.durable = False  #: the directory is synced as well

    @property
    def changes_files(self) -> bool:
        return bool(self.writes or self.moves or self.posts)

    def record_of(self, job_id: str) -> bytes | None:
        """What the file of a job is to hold."""
        return self.writes.get(job_id + RECORD_SUFFIX)


class Committer:
    """Makes batches true in one folder, for the holder of its lock."""

    def __init__(self, folder: Folder, audit: AuditLog) -> None:
        self._folder = folder
        self._audit = audit
        self.journal = Journal(folder)
        self._debts: list[Line] = []
        self._replaced: list[int] = []

    def close(self) -> None:
        self.journal.close()

    def take_replaced(self) -> list[int]:
        """Handles of the files that were replaced, once: whoever closes them frees these.

        That is best done after the lock is released: a disk that discards what is freed takes as
        long for it as for a sync.
        """
        handles, self._replaced = self._replaced, []
        return handles

    def write(
        self,
        batch: Batch,
        sight: Sight,
        progress: Progress | None = None,
        alive: Callable[[], None] | None = None,
    ) -> None:
        """Make the files true. An OSError leaves everything as it was.

        `alive` is called now and then in a batch that takes its time.
        """
        alive = alive if len(batch.writes) >= BULK else None
        temps = self._prepare(batch, sight, _both(progress, alive))
        moves = [*zip(temps, batch.writes, strict=True), *batch.moves]
        # A batch must be whole after a power cut too, so its intent is synced; it is one sync more.
        whole = len(moves) >= BULK or bool(batch.moves)
        try:
            for post, data in batch.posts.items():
                moves.append((self._prepare_post(post, data, sight), post))
            self.journal.begin(Intent(moves, batch.lines), sync=whole)
        except BaseException:
            self._discard([source for source, _ in moves if is_temp_name(source)])
            raise
        sight.before_change()
        self._make(batch, moves)
        if batch.events:
            self._log_events(batch.events)
        sight.after_change()
        if batch.durable:
            # Should this fail, the intent stays: the change stands, the next holder tells of it.
            self._folder.sync()

    def _log_events(self, events: list[tuple[str, bytes]]) -> None:
        from mam_core.stores.events_log import append_event

        for job_id, payload in events:
            append_event(self._folder, job_id, payload)

    def tell(
        self,
        batch: Batch,
        progress: Progress | None = None,
        alive: Callable[[], None] | None = None,
    ) -> None:
        """Write the audit lines; those that fail stay in the journal for the next holder."""
        progress = _both(progress, alive if len(batch.lines) >= BULK else None)
        owed = self._debts
        late = {job_id for job_id, _ in owed}
        for done, (job_id, line) in enumerate(batch.lines, 1):
            job = batch.jobs.get(job_id)
            # A line must not overtake one of its job that is still owed.
            if job_id in late or not self._tell(job_id, line, job, batch.record_of(job_id)):
                owed.append((job_id, _with_meta(line, job)))
            if progress is not None:
                progress(len(batch.lines) + done, 2 * len(batch.lines))
        late = {job_id for job_id, _ in owed}
        for job_id, line in batch.notes:
            if job_id in late or not self._audit.append(job_id, line):
                owed.append((job_id, line))
                late.add(job_id)
        if batch.changes_files or owed:
            self._owe(owed)
            if batch.moves:
                # An archive move names no temp file: replayed after a power cut it would be wrong.
                self.journal.sync()
        self._debts = []

    def recover(self, *, died: bool) -> None:
        """Finish what an earlier holder began: its renames, then its audit lines."""
        owed: list[Line] = []
        late: set[str] = set()
        moved = False
        for intent in self.journal.pending():
            for source, target in intent.moves:
                try:
                    self._folder.replace(source, target)
                    moved = True
                except FileNotFoundError:
                    continue  # it got that far
            for job_id, line in intent.audit:
                # One wait for a history whose holder is stuck, however much it is owed.
                if job_id in late or not self._pay(job_id, line):
                    owed.append((job_id, line))
                    late.add(job_id)
        if moved:
            self._folder.sync()
        if died:
            self._discard([name for name in self._folder.names() if is_temp_name(name)])
            with suppress(FileNotFoundError), self._folder.subfolder(OUTBOX) as outbox:
                self._discard([f"{OUTBOX}/{name}" for name in outbox.names() if is_temp_name(name)])
        self._owe(owed)
        self._debts = owed

    def _prepare(self, batch: Batch, sight: Sight, progress: Progress | None) -> list[str]:
        """Every new file under a temp name, synced; and the catalogue knows of them.

        It is told before the disk is waited for: after a wait the same code takes twice as long.
        """
        temps: list[str] = []
        open_files: dict[str, int] = {}
        states: dict[str, os.stat_result] = {}
        bulk = len(batch.writes) >= BULK
        try:
            for name, data in batch.writes.items():
                temp = temp_name(name.removesuffix(RECORD_SUFFIX).lstrip("."))
                sight.before_change()
                fd = open_files[temp] = self._folder.create(temp, data)
                sight.after_change()
                temps.append(temp)
                states[name] = os.fstat(fd)
                if bulk:
                    os.close(open_files.pop(temp))
                if progress is not None:
                    progress(len(temps), 2 * len(batch.writes))
            names = ((job, record_name(job.job_id)) for job in batch.jobs.values())
            written = [Written(job, states[name]) for job, name in names if name in states]
            sight.note(written + batch.restored, batch.removed)
            for temp, fd in open_files.items():
                sync_fd(fd, f"{self._folder.path}/{temp}")
            if bulk:
                self._folder.sync_all()
        except BaseException:
            self._discard(temps)
            raise
        finally:
            for fd in open_files.values():
                os.close(fd)
        return temps

    def _prepare_post(self, post: str, data: bytes, sight: Sight) -> str:
        name = post.rpartition("/")[2]
        sight.before_change()
        with self._folder.subfolder(OUTBOX, create=True) as outbox:
            sight.after_change()
            temp = temp_name(name.removesuffix(RECORD_SUFFIX))
            outbox.put_new(temp, data)
        return f"{OUTBOX}/{temp}"

    def _make(self, batch: Batch, moves: list[tuple[str, str]]) -> None:
        done: list[tuple[str, str]] = []
        try:
            for source, target in moves:
                if target not in batch.fresh and len(moves) < BULK:
                    self._hold(target)
                self._folder.replace(source, target)
                done.append((source, target))
        except OSError:
            for source, target in reversed(done):
                if target in batch.fresh:
                    self._folder.remove(target)
                elif (source, target) in batch.moves:
                    self._folder.replace(target, source)
                elif target in batch.before:
                    self._put_back(target, batch.before[target])
            self._discard([source for source, _ in moves if is_temp_name(source)])
            self._owe(self._debts)
            raise

    def _hold(self, target: str) -> None:
        if (old := self._folder.hold(target)) is not None:
            self._replaced.append(old)

    def _put_back(self, name: str, data: bytes | None) -> None:
        if data is None:
            self._folder.remove(name)
        else:
            self._folder.write(name, data)

    def _tell(
        self,
        job_id: str,
        line: dict[str, Any],
        job: Job | None,
        record: bytes | None = None,
        *,
        told: bool = False,
    ) -> bool:
        meta = line.get(_META)
        plain = {name: value for name, value in line.items() if name != _META} if meta else line
        if job is None:
            return told or self._audit.append(job_id, plain)
        first = line["event"] == AuditEvent.REGISTERED
        if told:
            return self._audit.set_status(job, meta=meta or (job.redacted() if first else None))
        if first:
            return self._audit.begin(job, plain, meta=meta, record=record)
        return self._audit.append(job_id, plain, job)

    def _pay(self, job_id: str, line: dict[str, Any]) -> bool:
        told = self._audit.tells(job_id, line)
        return self._tell(job_id, line, self._current(job_id), told=told)

    def _owe(self, owed: list[Line]) -> None:
        try:
            lost = self.journal.owe(owed)
        except OSError as problem:
            warn(f"the journal keeps what is done, to be looked at again: {problem}")
            return
        if lost:
            warn(f"{lost} audit lines could not be written for too long and are given up")

    def _current(self, job_id: str) -> Job | None:
        try:
            return read_job(self._folder, job_id)[0]
        except (OSError, MamError):
            return None

    def _discard(self, temps: list[str]) -> None:
        for temp in temps:
            self._folder.remove(temp)


def _with_meta(line: dict[str, Any], job: Job | None) -> dict[str, Any]:
    """The debt of a first line keeps the record as registered; when it is paid, that moved on."""
    if job is None or line["event"] != AuditEvent.REGISTERED:
        return line
    return {**line, _META: job.redacted()}


def _both(progress: Progress | None, alive: Callable[[], None] | None) -> Progress | None:
    """Progress for who asked for it, and now and then a sign of life for who waits for the lock."""
    if alive is None:
        return progress

    def step(done: int, of: int) -> None:
        alive()
        if progress is not None:
            progress(done, of)

    return step
