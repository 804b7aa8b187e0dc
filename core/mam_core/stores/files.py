"""The files store: ``<job_id>.json`` is the truth, which any tool can read.

Writing is under the registry's lock and goes through `commit`. A job's first
and last word are also synced in the directory, so that an acknowledged job or
result survives a power cut. Reading takes no lock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mam_core import codec, registry_marks
from mam_core.audit import AuditLog, warn
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
from mam_core.locations import realm_of
from mam_core.moving_in import check_no_other_files
from mam_core.records import Job
from mam_core.stores.base import NameKind, Paper, Progress, Query, Want
from mam_core.stores.catalogue import (
    Answers,
    Catalogue,
    Scan,
    ScanAnswers,
    is_record_name,
    record_name,
)
from mam_core.stores.commit import Committer
from mam_core.stores.files_transaction import ARCHIVE, FilesFacts, FilesTransaction
from mam_core.stores.lock import LOCK_NAME, RegistryLock
from mam_core.stores.mounts import check_local
from mam_core.summaries import Summary, Unreadable

if TYPE_CHECKING:
    from mam_core.events.directory_watch import DirectoryWatch
    from mam_core.stores.outbox_files import FilesOutbox


class FilesStore:
    """A folder of records. One object serves one thread at a time for reading, any for writing."""

    url = ""

    def __init__(
        self,
        path: str,
        audit: AuditLog,
        *,
        catalogue: Catalogue | None = None,
        allow_network: bool = False,
        logs_events: bool = False,
    ) -> None:
        self.logs_events = logs_events
        self.path = os.path.abspath(path)
        self.audit = audit
        self._catalogue: Catalogue = catalogue or Scan()
        self._allow_network = allow_network
        self._folder: Folder | None = None
        self._opening = threading.Lock()
        self._lock: RegistryLock | None = None
        self._committer: Committer | None = None
        self._was_there = False
        self._distrust: str | None = None
        self._warned_loose = False

    @property
    def realm(self) -> str:
        return realm_of(self.path)

    @property
    def secret(self) -> None:
        return None

    @property
    def outbox(self) -> FilesOutbox:
        from mam_core.stores.outbox_files import FilesOutbox

        return FilesOutbox(self.path)

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

    def queued(self) -> dict[str, int]:
        try:
            return self._look(self._open()).queued()
        except RegistryMissing:
            return {}

    def has(self, kind: NameKind, name: str) -> bool:
        try:
            return self._look(self._open()).has(kind, name)
        except RegistryMissing:
            return False

    def names(self, kind: NameKind) -> list[str]:
        try:
            return self._look(self._open()).names(kind)
        except RegistryMissing:
            return []

    def ahead(self, want: Want, job: Summary) -> int:
        try:
            return self._look(self._open()).ahead(want, job, self.facts())
        except RegistryMissing:
            return 0

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

    def stored(self, query: Query) -> Iterator[bytes | Unreadable]:
        try:
            answers = self._look(self._open())
        except RegistryMissing:
            return
        yield from answers.stored(query)
        yield from answers.unreadable

    def facts(self) -> FilesFacts:
        folder = self._open()
        return FilesFacts(folder, self._look(folder), to_show=True)

    def paper(self, name: Paper) -> bytes | None:
        from mam_core.stores.paper_files import paper_name, read_paper

        try:
            return read_paper(self._open(), name)
        except RegistryMissing:
            return None
        except OSError as problem:
            raise explain(problem, f"cannot read {paper_name(name)}") from problem

    def watch(self, wake: Callable[[], None]) -> DirectoryWatch:
        from mam_core.events.directory_watch import DirectoryWatch

        return DirectoryWatch(self.path, wake)

    def claim_at_once(self, *_: object) -> None:
        """Asking in a transaction is no journey here."""

    def now(self) -> None:
        return None

    def remember(self) -> None:
        registry_marks.remember(self.path)

    def removal(self) -> str:
        is_there = self._has_records() or os.path.lexists(os.path.join(self.path, ARCHIVE))
        if not is_there and os.path.lexists(os.path.join(self.path, LOCK_NAME)):
            # A worker that was still running has created the lock again.
            registry_marks.made_anew(self.path)
        return registry_marks.removal(self.path, is_there=is_there)

    def forget_removal(self) -> None:
        registry_marks.forget(self.path)
        if self._has_records():
            registry_marks.remember(self.path)  # those of now, which may be removed as well

    def _has_records(self) -> bool:
        """As in a folder that another tool made, or that a backup brought back."""
        try:
            with os.scandir(self.path) as entries:
                return any(is_record_name(entry.name) for entry in entries)
        except OSError:
            return False

    def close(self) -> None:
        self._catalogue.close()
        self._forget()
        self.audit.close()

    # -- writing, under the lock -----------------------------------------------------------

    @contextmanager
    def transaction(
        self, *, create: bool = False, progress: Progress | None = None
    ) -> Iterator[FilesTransaction]:
        folder = self._open(create=create)
        self._move_in(folder)
        with self._holding(folder) as committer:
            sight = self._catalogue.sight(folder, self._still_here)
            try:
                transaction = FilesTransaction(self, folder, sight)
                yield transaction
                batch = transaction.batch
                if batch.changes_files:
                    if not folder.is_present():
                        raise self._gone()
                    committer.write(batch, sight, progress, self._still_here)
                    sight.confirm()
            finally:
                sight.close()
            committer.tell(batch, progress, self._still_here)

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
            replaced = committer.take_replaced()
            lock.release(wipe=settled)
            for handle in replaced:
                os.close(handle)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The bare lock, for scripts that do their own reading and writing under it."""
        folder = self._open(create=True)
        self._move_in(folder)
        with self._holding(folder):
            yield

    def _look(self, folder: Folder) -> Answers:
        """For a reader, who waits for nobody.

        Where the catalogue lags behind and the lock is free, it is brought up to date on the way;
        where somebody holds the lock, that one does it, and we see the state before.
        """
        if (known := self._catalogue.current(folder)) is not None:
            return known
        if not folder.has(LOCK_NAME):
            return ScanAnswers(folder)  # nobody has ever written here: looking leaves no trace
        try:
            with self._holding(folder, wait=False):
                sight = self._catalogue.sight(folder, self._still_here)
                try:
                    return sight.answers()
                finally:
                    sight.close()
        except BlockingIOError:
            return self._catalogue.latest(folder)
        except RegistryGone:
            raise
        except StoreError:
            return ScanAnswers(folder)  # not ours to write in

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
        with self._opening:
            if self._folder is not None and not self._folder.is_present():
                self._forget()
            if self._folder is None:
                try:
                    # What is gone was removed by somebody: it is never made anew in silence.
                    self._folder = Folder.open(self.path, create=create and not self._was_there)
                except FileNotFoundError:
                    if self._was_there:
                        raise RegistryGone(
                            f"{self.path} was removed: nothing was written"
                        ) from None
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
            self._lock, self._committer = RegistryLock.of(folder), Committer(folder, self.audit)
        return self._lock, self._committer

    def _move_in(self, folder: Folder) -> None:
        """Before the first write: make sure that this is a registry, and make it ours alone."""
        if self._lock is not None:
            return
        if not folder.has(LOCK_NAME):
            check_no_other_files(folder)
        folder.check_owner()
        if folder.is_loose:
            warn(f"{self.path} was open to other users; now it is not")
            folder.tighten()
        keep_out_of_git(self.path)

    def _still_here(self) -> None:
        if self._lock is not None:
            self._lock.still_here()

    def _gone(self) -> RegistryGone:
        self._forget()
        return RegistryGone(f"{self.path} was removed or replaced: nothing was written")

    def _forget(self) -> None:
        if self._committer is not None:
            self._committer.close()
        if self._folder is not None:
            self._folder.close()
        self._folder = self._lock = self._committer = None


def not_found(job_id: str, path: str) -> JobNotFound:
    return JobNotFound(f"there is no job {job_id} in {path}")
