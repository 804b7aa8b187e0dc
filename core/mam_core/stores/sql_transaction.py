"""A transaction of a store in a database: what it sees, and what it wants to be true at its end.

Changes are staged and written together, so that a claim is one question and one
answer. Audit lines come last and apart: should they fail, the change stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mam_core.audit import AuditEvent, AuditLine
from mam_core.errors import JobNotFound, MamError, UnreadableRecord
from mam_core.records import ENDED, Job, Status, check_job_id
from mam_core.stores import sql_answers, sql_rows
from mam_core.stores.base import Gates, Paper, Progress, Query, Want
from mam_core.stores.gates_file import encode_gates
from mam_core.stores.index_rows import prompt_sum
from mam_core.stores.post_files import encode_post
from mam_core.stores.sql_answers import TalkFacts, decoded, written_out
from mam_core.stores.sql_audit import first_lines, one_line
from mam_core.stores.sql_base import Change, Statement, Talk
from mam_core.stores.sql_rows import storable
from mam_core.stores.sql_text import Dialect
from mam_core.summaries import Summary

if TYPE_CHECKING:
    from mam_core.events.post import Post

#: Keys, twins, places and the order are decided by one registration at a time.
_REGISTERING = "registering"
_GATES = "gates"


class SqlTransaction:
    """Stages what is to be written; `write` makes it true."""

    def __init__(self, change: Change, dialect: Dialect, place: str) -> None:
        self._change = change
        self._dialect = dialect
        self._place = place
        self._facts = TalkFacts(change)
        self._read: dict[str, Job] = {}  #: as they stand in the database
        self._staged: dict[str, Job] = {}
        self._fresh: dict[str, Job] = {}
        self._others: list[Statement] = []
        self._lines: list[Statement] = []
        self._is_registering = False
        self.has_posts = False

    # -- reading ---------------------------------------------------------------------------

    def get(self, job_id: str) -> Job:
        check_job_id(job_id)
        staged = self._staged.get(job_id) or self._fresh.get(job_id)
        if staged is not None:
            return staged
        rows = self._change.ask("get_to_change", job_id=job_id)
        if not rows:
            raise not_found(self._change, job_id, self._place)
        job = self._read[job_id] = decoded((job_id, *rows[0]))
        return job

    def next_claimable(self, want: Want) -> Job | None:
        job = sql_answers.next_claimable(self._change, want, self._facts, self._dialect)
        if job is not None:
            self._read[job.job_id] = job
        return job

    def status_of(self, job_id: str) -> Status | None:
        return self._facts.status_of(job_id)

    def running_in(self, group: str) -> int:
        return self._facts.running_in(group)

    def gates(self) -> Gates:
        return self._facts.gates()

    def gates_to_change(self) -> Gates:
        self._change.hold([_GATES])
        return sql_answers.read_gates(self._change)

    def paper(self, name: Paper) -> bytes | None:
        self._change.hold([f"paper {name}"])
        return sql_answers.read_paper(self._change, name)

    def live_with_key(self, key: str) -> str | None:
        self._register()
        rows = self._change.ask("live_with_key", key=storable(key))
        return next((job.job_id for job in map(decoded, rows) if job.key == key), None)

    def live_twin(self, agent_session: str, prompt: str) -> str | None:
        self._register()
        values = {"agent_session": storable(agent_session), "prompt_sum": prompt_sum(prompt)}
        found = map(decoded, self._change.ask("live_twin", **values))
        return next((job.job_id for job in found if job.prompt == prompt), None)

    def live_writer(self, path: str) -> str | None:
        self._register()
        found = map(decoded, self._change.ask("live_writer", path=storable(path)))
        return next((job.job_id for job in found if path in job.artifact_paths), None)

    def awaited(self) -> frozenset[str]:
        self._register()  # a job that comes after another is not registered while that one leaves
        return frozenset(row[0] for row in self._change.ask("awaited"))

    def ended(self) -> list[Summary]:
        return sql_answers.find(self._change, Query(statuses=ENDED), self._dialect)

    def last_order(self) -> int:
        self._register()
        return int(self._change.ask("last_order")[0][0] or 0)

    def exists(self, job_id: str) -> bool:
        self._register()
        taken = job_id in self._staged or job_id in self._fresh
        return taken or bool(self._change.ask("exists", job_id=storable(job_id)))

    def batches(self) -> list[str]:
        return sorted(row[0] for row in self._change.ask("batches"))

    def _register(self) -> None:
        if not self._is_registering:
            self._is_registering = True
            self._change.hold([_REGISTERING])

    # -- writing ---------------------------------------------------------------------------

    def insert(self, jobs: Sequence[Job], lines: Sequence[AuditLine]) -> None:
        self._register()
        self._fresh |= {job.job_id: job for job in jobs}
        told = [line.to_dict(job.job_id) for job, line in zip(jobs, lines, strict=True)]
        self._lines += first_lines(jobs, told)

    def put(self, job: Job, line: AuditLine | None) -> None:
        (self._fresh if job.job_id in self._fresh else self._staged)[job.job_id] = job
        if line is None:
            return
        if line.event == AuditEvent.REGISTERED:
            self._lines += first_lines([job], [line.to_dict(job.job_id)])
        else:
            self.note(job.job_id, line)

    def note(self, job_id: str, line: AuditLine) -> None:
        self._lines.append(one_line(job_id, line.to_dict(job_id)))

    def post(self, post: Post) -> None:
        row = {"seq": post.seq, "job_id": post.job_id, "body": encode_post(post), "aside": None}
        self._others.append(Statement("put_post", [row]))
        self.has_posts = True

    def set_gates(self, gates: Gates) -> None:
        self._change.hold([_GATES])
        self._others.append(Statement("put_gates", [{"body": encode_gates(gates)}]))

    def set_paper(self, name: Paper, data: bytes) -> None:
        self._others.append(Statement("put_paper", [{"name": str(name), "body": data}]))

    def archive(self, jobs: Sequence[Job], batch: str, line: AuditLine) -> None:
        ids = [job.job_id for job in jobs]
        bodies = [self._change.ask("get_to_change", job_id=job_id) for job_id in ids]
        rows = [
            {"batch": batch, "job_id": job_id, "body": written_out((job_id, *found[0]))}
            for job_id, found in zip(ids, bodies, strict=True)
        ]
        self._others += [Statement("put_archived", rows), *sql_rows.forgetting(ids)]
        for job_id in ids:
            self.note(job_id, line)

    def restore(self, batch: str, line: AuditLine) -> list[str]:
        rows = self._change.ask("archived_that_can_return", batch=batch)
        jobs = [decoded(row) for row in rows]
        gone = [{"batch": batch, "job_id": job.job_id} for job in jobs]
        self._others += [Statement("forget_archived", gone), *sql_rows.statements(jobs)]
        for job in jobs:
            self.note(job.job_id, line)
        return [job.job_id for job in jobs]

    def write(self, progress: Progress | None = None) -> None:
        """Everything that was staged, together."""
        self._change.finish(list(self._writes()), self._lines, progress)

    @property
    def changes_something(self) -> bool:
        return bool(self._fresh or self._staged or self._others or self._lines)

    def _writes(self) -> Iterable[Statement]:
        moved: list[Job] = []
        other: list[Job] = []
        for job in self._staged.values():
            known = self._read.get(job.job_id)
            same = known is not None and sql_rows.asks_the_same(known, job)
            (moved if same else other).append(job)
        if self._fresh:
            yield from sql_rows.statements(list(self._fresh.values()), new=True)
        if moved:
            yield Statement("move_job", [sql_rows.moving(job) for job in moved])
        if other:
            yield from sql_rows.statements(other)
        yield from self._others


def not_found(talk: Talk, job_id: str, place: str) -> MamError:
    """Why there is no record of that name to be had."""
    for name, error in talk.ask("unreadable"):
        if name == job_id:
            return UnreadableRecord(f"job {job_id} cannot be read: {error}")
    return JobNotFound(f"there is no job {job_id} in {place}")
