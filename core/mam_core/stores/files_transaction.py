"""A transaction of the files store: what it sees, and what it wants to be true at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from mam_core import codec
from mam_core.audit import AuditLine
from mam_core.audit_base import Audit
from mam_core.disk import Folder
from mam_core.errors import StoreError
from mam_core.records import Job, Status
from mam_core.stores.base import Gates, Paper, Want
from mam_core.stores.catalogue import (
    Answers,
    Sight,
    Written,
    read_job,
    record_name,
    record_stems,
)
from mam_core.stores.commit import OUTBOX, Batch
from mam_core.stores.gates_file import GATES_NAME, encode_gates, read_gates
from mam_core.summaries import Summary

if TYPE_CHECKING:
    from mam_core.events.post import Post

ARCHIVE = ".archive"
#: Of a file that is no record.
_MAX_BYTES = 4 * 1024 * 1024


class Source(Protocol):
    """What a transaction asks of its store."""

    @property
    def audit(self) -> Audit: ...
    @property
    def logs_events(self) -> bool: ...
    def read(self, folder: Folder, name: str, job_id: str) -> Job: ...


class FilesFacts:
    """What the claim rules ask, answered by a catalogue."""

    def __init__(self, folder: Folder, answers: Answers, *, to_show: bool = False) -> None:
        self._folder = folder
        self._answers = answers
        self._to_show = to_show
        self._gates: Gates | None = None

    def status_of(self, job_id: str) -> Status | None:
        return self._answers.status_of(job_id)

    def running_in(self, group: str) -> int:
        return self._answers.running_in(group)

    def gates(self) -> Gates:
        if self._gates is None:
            self._gates = read_gates(self._folder, to_show=self._to_show)
        return self._gates


class FilesTransaction:
    """Stages what is to be written; the store makes it true when the block ends."""

    def __init__(self, store: Source, folder: Folder, sight: Sight) -> None:
        self._store = store
        self._folder = folder
        self._sight = sight
        self._facts_made: FilesFacts | None = None
        self._answers_made: Answers | None = None
        self.batch = Batch()

    # -- reading ---------------------------------------------------------------------------

    @property
    def _answers(self) -> Answers:
        if self._answers_made is None:
            self._answers_made = self._sight.answers()
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

    gates_to_change = gates

    def paper(self, name: Paper) -> bytes | None:
        from mam_core.stores.paper_files import paper_name, read_paper  # no claim needs it

        staged = self.batch.writes.get(paper_name(name))
        return read_paper(self._folder, name) if staged is None else staged

    def live_with_key(self, key: str) -> str | None:
        return self._answers.live_with_key(key)

    def live_twin(self, agent_session: str, prompt: str) -> str | None:
        return self._answers.live_twin(agent_session, prompt)

    def live_writer(self, path: str) -> str | None:
        return self._answers.live_writer(path)

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

    def post(self, post: Post) -> None:
        from mam_core.stores.outbox_files import encode_post, post_name

        path = f"{OUTBOX}/{post_name(post)}"
        self.batch.posts[path] = encode_post(post)
        self.batch.fresh.add(path)
        if self._store.logs_events:
            self.batch.events.append((post.job_id, post.payload))

    def set_gates(self, gates: Gates) -> None:
        self._replace(GATES_NAME, encode_gates(gates))

    def set_paper(self, name: Paper, data: bytes) -> None:
        from mam_core.stores.paper_files import paper_name

        self._replace(paper_name(name), data)

    def _replace(self, name: str, data: bytes) -> None:
        """Several of these may change together: each can be put back when another one cannot."""
        if name not in self.batch.before:
            try:
                self.batch.before[name] = self._folder.read(name, _MAX_BYTES)[0]
            except FileNotFoundError:
                self.batch.before[name] = None
            except (OSError, StoreError):
                pass  # what nobody can read is written anew, and is not missed
        self.batch.writes[name] = data

    def archive(self, jobs: Sequence[Job], batch: str, line: AuditLine) -> None:
        from mam_core.stores.events_log import log_name

        with self._folder.subfolder(ARCHIVE, create=True) as archive:
            archive.subfolder(batch, create=True).close()
        for job in jobs:
            name = record_name(job.job_id)
            self.batch.moves.append((name, f"{ARCHIVE}/{batch}/{name}"))
            log = log_name(job.job_id)
            if self._folder.has(log):
                self.batch.moves.append((log, f"{ARCHIVE}/{batch}/{log}"))
            self.batch.removed.append(job.job_id)
            self.batch.lines.append((job.job_id, line.to_dict(job.job_id)))
        self.batch.durable = True

    def restore(self, batch: str, line: AuditLine) -> list[str]:
        from mam_core.stores.events_log import log_name

        restored = []
        with self._folder.subfolder(ARCHIVE) as archive, archive.subfolder(batch) as kept:
            for job_id in sorted(record_stems(kept)):
                name = record_name(job_id)
                if self._folder.has(name):
                    continue  # the id lives again; what is archived stays where it is
                self.batch.restored.append(Written(*read_job(kept, job_id)))
                self.batch.moves.append((f"{ARCHIVE}/{batch}/{name}", name))
                log = log_name(job_id)
                if kept.has(log) and not self._folder.has(log):
                    self.batch.moves.append((f"{ARCHIVE}/{batch}/{log}", log))
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


def _holds_records(archive: Folder, batch: str) -> bool:
    try:
        with archive.subfolder(batch) as kept:
            return any(record_stems(kept))
    except (OSError, StoreError):
        return False  # a stray file among the batches
