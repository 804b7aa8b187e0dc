"""The files store: ``<job_id>.json`` is the truth, which any tool can read.

Writing is under the registry's lock and goes through `commit`. A job's first
and last word are also synced in the directory, so that an acknowledged job or
result survives a power cut. Reading takes no lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mam_core import codec
from mam_core.audit import AuditLine, AuditLog, warn
from mam_core.disk import Folder, explain, keep_out_of_git
from mam_core.errors import (
    JobNotFound,
    RegistryGone,
    RegistryMissing,
    StoreError,
    SyncFailed,
    UnreadableRecord,
    UnsafePath,
)
from mam_core.records import Job, Status, Summary, Unreadable
from mam_core.stores.base import Gates, Progress, Query, Want
from mam_core.stores.catalogue import (
    Answers,
    Catalogue,
    Scan,
    ScanAnswers,
    Written,
    read_job,
    record_name,
    record_stems,
)
from mam_core.stores.commit import Batch, Committer
from mam_core.stores.gates_file import GATES_NAME, encode_gates, read_gates
from mam_core.stores.lock import RegistryLock
from mam_core.stores.mounts import check_local

ARCHIVE = ".archive"


class FilesStore:
    """A folder of records. One object serves one thread at a time for reading, any for writing."""

    def __init__(
        self,
        path: str,
        audit: AuditLog,
        *,
        catalogue: Catalogue | None = None,
        allow_network: bool = False,
    ) -> None:
        self.path = os.path.abspath(path)
        self.audit = audit
        self._catalogue: Catalogue = catalogue or Scan()
        self._allow_network = allow_network
        self._folder: Folder | None = None
        self._lock: RegistryLock | None = None
        self._committer: Committer | None = None
        self._was_there = False
        self._distrust: str | None = None
        self._warned_loose = False

    # -- reading, without a lock -----------------------------------------------------------

    def get(self, job_id: str) -> Job:
        name = record_name(job_id)
        try:
            return self.read(self._open(), name, job_id)
        except RegistryMissing:
            raise not_found(job_id, self.path) from None

    def raw(self, job_id: str) -> bytes:
        name = record_name(job_id)
        try:
            return self._open().read(name, codec.MAX_RECORD_BYTES)[0]
        except (FileNotFoundError, RegistryMissing):
            raise not_found(job_id, self.path) from None
        except UnsafePath as problem:
            raise UnreadableRecord(f"job {job_id} cannot be read: {problem}") from None
        except OSError as problem:
            raise explain(problem, f"cannot read job {job_id}") from problem

    def find(self, query: Query) -> tuple[list[Summary], list[Unreadable]]:
        try:
            answers = self._look(self._open())
        except RegistryMissing:
            return [], []
        return answers.find(query), list(answers.unreadable)

    def unreadable(self) -> list[Unreadable]:
        try:
            return list(self._look(self._open()).unreadable)
        except RegistryMissing:
            return []

    def bodies(self, query: Query) -> Iterator[Job | Unreadable]:
        try:
            answers = self._look(self._open())
        except RegistryMissing:
            return
        yield from answers.bodies(query)
        yield from answers.unreadable

    def facts(self) -> FilesFacts:
        folder = self._open()
        return FilesFacts(folder, self._look(folder))

    def close(self) -> None:
        self._catalogue.close()
        self._forget()

    # -- writing, under the lock -----------------------------------------------------------

    @contextmanager
    def transaction(
        self, *, create: bool = False, progress: Progress | None = None
    ) -> Iterator[FilesTransaction]:
        folder = self._open(create=create)
        with self._holding(folder) as committer:
            transaction = FilesTransaction(self, folder)
            yield transaction
            batch = transaction.batch
            if batch.changes_files:
                if not folder.is_present():
                    raise self._gone()
                watch = self._catalogue.watch(folder)
                written = committer.write(batch, watch, progress)
                written += transaction.restored
                self._catalogue.note(folder, watch, written, batch.removed)
            committer.tell(batch, progress)

    @contextmanager
    def _holding(self, folder: Folder, *, wait: bool = True) -> Iterator[Committer]:
        """The lock, with whatever a dead holder left behind brought to its end."""
        lock, committer = self._prepare_to_write(folder)
        died = lock.acquire(wait=wait)
        settled = not died
        try:
            if not folder.is_present():
                raise self._gone()
            if died or not committer.journal.is_empty():
                committer.recover(died=died)
            settled = True
            yield committer
        except SyncFailed as problem:
            self._distrust = problem.message
            raise
        except OSError as problem:
            raise explain(problem, self.path) from problem
        finally:
            lock.release(wipe=settled)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The bare lock, for scripts that do their own reading and writing under it."""
        with self._holding(self._open(create=True)):
            yield

    def answers(self, folder: Folder) -> Answers:
        """For a transaction: complete, since nobody else can write."""
        if not self._catalogue.is_current(folder):
            self._catalogue.catch_up(folder)
        return self._catalogue.answers(folder)

    def _look(self, folder: Folder) -> Answers:
        """For a reader, who waits for nobody.

        Where the catalogue lags behind and the lock is free, it is brought up to date on the way;
        where somebody holds the lock, that one does it, and we see the state before.
        """
        if not self._catalogue.is_current(folder):
            try:
                with self._holding(folder, wait=False):
                    self._catalogue.catch_up(folder)
            except BlockingIOError:
                pass
            except RegistryGone:
                raise
            except StoreError:
                return ScanAnswers(folder)  # not ours to write in
        return self._catalogue.answers(folder)

    def read(self, folder: Folder, name: str, job_id: str) -> Job:
        try:
            data, state = folder.read(name, codec.MAX_RECORD_BYTES)
            job = codec.decode_job(data, job_id)
        except FileNotFoundError:
            raise not_found(job_id, self.path) from None
        except (UnsafePath, UnreadableRecord) as problem:
            raise UnreadableRecord(f"job {job_id} cannot be read: {problem}") from None
        except OSError as problem:
            raise explain(problem, f"cannot read job {job_id}") from problem
        if state.st_mode & 0o077 and not self._warned_loose:
            self._warned_loose = True
            warn(f"{name} can be read by other users until it is next written")
        return job

    def _open(self, *, create: bool = False) -> Folder:
        if self._folder is not None and not self._folder.is_present():
            self._forget()
        if self._folder is None:
            try:
                # What was there and is gone was removed by somebody: never made anew in silence.
                self._folder = Folder.open(self.path, create=create and not self._was_there)
            except FileNotFoundError:
                if self._was_there:
                    raise RegistryGone(f"{self.path} was removed: nothing was written") from None
                raise RegistryMissing(f"there is no registry at {self.path} yet") from None
            self._was_there = True
        return self._folder

    def _prepare_to_write(self, folder: Folder) -> tuple[RegistryLock, Committer]:
        if self._distrust is not None:
            raise StoreError(f"nothing more is written by this process: {self._distrust}")
        if self._lock is None or self._committer is None:
            folder.check_owner()
            if not self._allow_network:
                check_local(folder)
            if folder.is_loose:
                warn(f"{self.path} was open to other users; now it is not")
                folder.tighten()
            keep_out_of_git(self.path)
            self._lock, self._committer = RegistryLock.of(folder), Committer(folder, self.audit)
        return self._lock, self._committer

    def _gone(self) -> RegistryGone:
        self._forget()
        return RegistryGone(f"{self.path} was removed or replaced: nothing was written")

    def _forget(self) -> None:
        if self._committer is not None:
            self._committer.close()
        if self._folder is not None:
            self._folder.close()
        self._folder = self._lock = self._committer = None


class FilesFacts:
    """What the claim rules ask, answered by a catalogue."""

    def __init__(self, folder: Folder, answers: Answers) -> None:
        self._folder = folder
        self._answers = answers
        self._gates: Gates | None = None

    def status_of(self, job_id: str) -> Status | None:
        return self._answers.status_of(job_id)

    def running_in(self, group: str) -> int:
        return self._answers.running_in(group)

    def gates(self) -> Gates:
        if self._gates is None:
            self._gates = read_gates(self._folder)
        return self._gates


class FilesTransaction:
    """Stages what is to be written; `FilesStore.transaction` makes it true at the end."""

    def __init__(self, store: FilesStore, folder: Folder) -> None:
        self._store = store
        self._folder = folder
        self._facts_made: FilesFacts | None = None
        self._answers_made: Answers | None = None
        self.batch = Batch()
        self.restored: list[Written] = []

    # -- reading ---------------------------------------------------------------------------

    @property
    def _answers(self) -> Answers:
        if self._answers_made is None:
            self._answers_made = self._store.answers(self._folder)
        return self._answers_made

    @property
    def _facts(self) -> FilesFacts:
        if self._facts_made is None:
            self._facts_made = FilesFacts(self._folder, self._answers)
        return self._facts_made

    def get(self, job_id: str) -> Job:
        name = record_name(job_id)
        staged = self.batch.jobs.get(job_id)
        return staged or self._store.read(self._folder, name, job_id)

    def exists(self, job_id: str) -> bool:
        name = record_name(job_id)
        return job_id in self.batch.jobs or self._folder.has(name) or self._store.audit.has(job_id)

    def next_claimable(self, want: Want) -> Job | None:
        return self._answers.next_claimable(want, self._facts)

    def status_of(self, job_id: str) -> Status | None:
        return self._facts.status_of(job_id)

    def running_in(self, group: str) -> int:
        return self._facts.running_in(group)

    def gates(self) -> Gates:
        return self._facts.gates()

    def live_with_key(self, key: str) -> str | None:
        return self._answers.live_with_key(key)

    def live_twin(self, agent_session: str, prompt: str) -> str | None:
        return self._answers.live_twin(agent_session, prompt)

    def awaited(self) -> frozenset[str]:
        return self._answers.awaited()

    def ended(self) -> list[Summary]:
        return list(self._answers.ended())

    def last_order(self) -> int:
        return self._answers.last_order()

    # -- writing ---------------------------------------------------------------------------

    def insert(self, jobs: Sequence[Job], lines: Sequence[AuditLine]) -> None:
        for job, line in zip(jobs, lines, strict=True):
            name = record_name(job.job_id)
            self.batch.fresh.add(name)
            self._stage(name, job, line)
        self.batch.durable = True

    def put(self, job: Job, line: AuditLine | None) -> None:
        self._stage(record_name(job.job_id), job, line)
        self.batch.durable |= job.is_ended

    def note(self, job_id: str, line: AuditLine) -> None:
        self.batch.notes.append((job_id, line.to_dict(job_id)))

    def set_gates(self, gates: Gates) -> None:
        self.batch.writes[GATES_NAME] = encode_gates(gates)

    def archive(self, jobs: Sequence[Job], batch: str, line: AuditLine) -> None:
        with self._folder.subfolder(ARCHIVE, create=True) as archive:
            archive.subfolder(batch, create=True).close()
        for job in jobs:
            name = record_name(job.job_id)
            self.batch.moves.append((name, f"{ARCHIVE}/{batch}/{name}"))
            self.batch.removed.append(job.job_id)
            self.batch.lines.append((job.job_id, line.to_dict(job.job_id)))
        self.batch.durable = True

    def restore(self, batch: str, line: AuditLine) -> list[str]:
        restored = []
        with self._folder.subfolder(ARCHIVE) as archive, archive.subfolder(batch) as kept:
            for job_id in sorted(record_stems(kept)):
                name = record_name(job_id)
                if self._folder.has(name):
                    continue  # the id lives again; what is archived stays where it is
                self.restored.append(Written(*read_job(kept, job_id)))
                self.batch.moves.append((f"{ARCHIVE}/{batch}/{name}", name))
                self.batch.lines.append((job_id, line.to_dict(job_id)))
                restored.append(job_id)
        self.batch.durable = True
        return restored

    def batches(self) -> list[str]:
        try:
            with self._folder.subfolder(ARCHIVE) as archive:
                return [name for name in sorted(archive.names()) if _holds_records(archive, name)]
        except FileNotFoundError:
            return []

    def _stage(self, name: str, job: Job, line: AuditLine | None) -> None:
        self.batch.writes[name] = codec.encode_job(job)
        self.batch.jobs[job.job_id] = job
        if line is not None:
            self.batch.lines.append((job.job_id, line.to_dict(job.job_id)))


def not_found(job_id: str, path: str) -> JobNotFound:
    return JobNotFound(f"there is no job {job_id} in {path}")


def _holds_records(archive: Folder, batch: str) -> bool:
    with archive.subfolder(batch) as kept:
        return any(record_stems(kept))
