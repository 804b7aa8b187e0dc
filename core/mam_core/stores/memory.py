"""A registry that lives in memory: for tests, demonstrations and trying a rule out.

It is a store like any other and passes the same contract suite. A transaction
works on a copy and puts it in place at its end, so that readers need no lock
and never see half of a change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from mam_core import codec
from mam_core.audit import AuditEvent, AuditLine, AuditLog
from mam_core.errors import JobNotFound, RegistryMissing
from mam_core.events.post import Post
from mam_core.events.watch import Watch
from mam_core.records import Job, check_job_id
from mam_core.stores.base import Gates, Paper, Query, Want
from mam_core.stores.outbox_memory import MemoryOutbox
from mam_core.stores.roll import Roll
from mam_core.summaries import Summary, Unreadable


class Moment(Roll):
    """Everything that the store holds at one time; also what the claim rules ask."""

    def __init__(
        self,
        jobs: Mapping[str, Job] | None = None,
        gates: Gates | None = None,
        archive: Mapping[str, Mapping[str, Job]] | None = None,
        papers: Mapping[Paper, bytes] | None = None,
    ) -> None:
        super().__init__((jobs or {}).values())
        self.held = gates or Gates()
        self.archive = {batch: dict(kept) for batch, kept in (archive or {}).items()}
        self.papers = dict(papers or {})

    def copy(self) -> Moment:
        return Moment(self.jobs, self.held, self.archive, self.papers)

    def gates(self) -> Gates:
        return self.held

    def get(self, job_id: str) -> Job:
        try:
            return self.jobs[check_job_id(job_id)]
        except KeyError:
            raise JobNotFound(f"there is no job {job_id} in memory") from None


class MemoryStore:
    """Records in a dictionary, their history in a real audit log."""

    realm = "memory"
    secret = None
    url = ""

    def __init__(self, audit: AuditLog) -> None:
        self.audit = audit
        self.outbox = MemoryOutbox()
        self._lock = threading.RLock()
        self._now: Moment | None = None

    def get(self, job_id: str) -> Job:
        return self._moment().get(job_id)

    def raw(self, job_id: str) -> bytes:
        return codec.encode_job(self.get(job_id))

    def find(self, query: Query) -> tuple[list[Summary], list[Unreadable]]:
        return self._moment().find(query), []

    def queued(self) -> dict[str, int]:
        return self._moment().queued()

    def unreadable(self) -> list[Unreadable]:
        return []

    def stored(self, query: Query) -> Iterator[bytes | Unreadable]:
        yield from self._moment().stored(query)

    def bodies(self, query: Query) -> Iterator[Job | Unreadable]:
        yield from self._moment().bodies(query)

    def facts(self) -> Moment:
        return self._moment()

    def paper(self, name: Paper) -> bytes | None:
        return self._moment().papers.get(name)

    def watch(self, wake: Callable[[], None]) -> Watch:
        raise NotImplementedError("nobody else writes here: there is nothing to watch for")

    def claim_at_once(self, *_: object) -> None:
        """Asking in a transaction is no journey here."""

    def now(self) -> None:
        return None

    def close(self) -> None:
        pass

    @contextmanager
    def transaction(
        self, *, create: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> Iterator[MemoryTransaction]:
        with self._lock:
            if self._now is None and not create:
                raise RegistryMissing("there is no registry in memory yet")
            transaction = MemoryTransaction(self._moment().copy(), self.audit)
            yield transaction
            self._now = transaction.moment
            for post in transaction.posts:
                self.outbox.put(post)
            for done, (job_id, line) in enumerate(transaction.told, 1):
                self._tell(job_id, line)
                if progress is not None:
                    progress(done, len(transaction.told))

    def _moment(self) -> Moment:
        return Moment() if self._now is None else self._now

    def _tell(self, job_id: str, line: AuditLine) -> None:
        job = self._moment().jobs.get(job_id)
        if line.event == AuditEvent.REGISTERED and job is not None:
            self.audit.begin(job, line.to_dict(job_id))
        else:
            changed = job if line.revision is not None else None
            self.audit.append(job_id, line.to_dict(job_id), changed)


class MemoryTransaction:
    """A copy of the store to work on, and the audit lines that belong to the work."""

    def __init__(self, moment: Moment, audit: AuditLog) -> None:
        self.moment = moment
        self.told: list[tuple[str, AuditLine]] = []
        self.posts: list[Post] = []
        self._audit = audit
        self.get = moment.get
        self.gates = self.gates_to_change = moment.gates
        self.paper = moment.papers.get
        self.status_of = moment.status_of
        self.running_in = moment.running_in
        self.live_with_key = moment.live_with_key
        self.live_twin = moment.live_twin
        self.live_writer = moment.live_writer
        self.awaited = moment.awaited
        self.ended = moment.ended
        self.last_order = moment.last_order

    def next_claimable(self, want: Want) -> Job | None:
        return self.moment.next_claimable(want, self.moment)

    def exists(self, job_id: str) -> bool:
        kept = self.moment.archive.values()
        known = job_id in self.moment.jobs or any(job_id in batch for batch in kept)
        return known or self._audit.has(job_id)

    def batches(self) -> list[str]:
        return sorted(self.moment.archive)

    def insert(self, jobs: Sequence[Job], lines: Sequence[AuditLine]) -> None:
        for job, line in zip(jobs, lines, strict=True):
            self.put(job, line)

    def put(self, job: Job, line: AuditLine | None) -> None:
        self.moment.jobs[job.job_id] = job
        if line is not None:
            self.note(job.job_id, line)

    def note(self, job_id: str, line: AuditLine) -> None:
        self.told.append((job_id, line))

    def post(self, post: Post) -> None:
        self.posts.append(post)

    def set_gates(self, gates: Gates) -> None:
        self.moment.held = gates

    def set_paper(self, name: Paper, data: bytes) -> None:
        self.moment.papers[name] = data

    def archive(self, jobs: Sequence[Job], batch: str, line: AuditLine) -> None:
        for job in jobs:
            self.moment.archive.setdefault(batch, {})[job.job_id] = self.moment.jobs.pop(job.job_id)
            self.note(job.job_id, line)

    def restore(self, batch: str, line: AuditLine) -> list[str]:
        kept = self.moment.archive[batch]
        restored = sorted(kept.keys() - self.moment.jobs.keys())
        for job_id in restored:
            self.moment.jobs[job_id] = kept.pop(job_id)
            self.note(job_id, line)
        if not kept:
            del self.moment.archive[batch]
        return restored
