"""What the index answers.

An answer that somebody will act on is checked against the file first: a claim
reads its candidate, a parent's status is read from the parent's record.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from operator import itemgetter
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from mam_core import codec
from mam_core.claims import is_closed, may_claim, slots_of
from mam_core.disk import Folder
from mam_core.errors import MamError
from mam_core.records import ENDED, Job, Reason, Status
from mam_core.stores.base import Facts, GateKind, NameKind, Query, Want
from mam_core.stores.catalogue import ScanAnswers, Written, encodable, read_job, record_name
from mam_core.stores.index_rows import (
    FILE,
    file_mark,
    prompt_sum,
    remove_rows,
    write_rows,
    write_unreadable,
)
from mam_core.summaries import Summary, Unreadable

_SUMMARY = ", ".join(f'"{name}"' for name in Summary._fields)
_BY_ORDER = itemgetter(Summary._fields.index("order"), Summary._fields.index("job_id"))
_LIVE = "live"
#: A damaged index fails, or answers with values of the wrong kind.
_DAMAGED = (sqlite3.Error, TypeError, ValueError, KeyError, OverflowError)
_OLDEST_FIRST = 'ORDER BY "order", job_id'

_CANDIDATES = f"""
    SELECT job_id, {FILE} FROM jobs
    WHERE status = 'pending' AND agent_session = ?
        AND (not_before IS NULL OR not_before <= ?)
        AND (parents = '' OR NOT EXISTS (
            SELECT 1 FROM parents LEFT JOIN jobs AS above ON above.job_id = parent
            WHERE child = jobs.job_id AND (above.status IS NULL OR above.status <> 'completed')))"""
_BEFORE = (
    """ AND (priority > ? OR (priority = ? AND ("order" < ? OR ("order" = ? AND job_id < ?))))"""
)
_IN_CLAIM_ORDER = ' ORDER BY priority DESC, "order", job_id LIMIT ?'

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")
_Question = Callable[Concatenate["IndexAnswers", _Given], _Answer]


def _or_scan(ask: _Question[_Given, _Answer]) -> _Question[_Given, _Answer]:
    """An index that fails in the middle of a question costs time, not the answer."""

    @wraps(ask)
    def answer(self: IndexAnswers, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        try:
            return ask(self, *args, **kwargs)
        except _DAMAGED:
            return cast(_Answer, getattr(ScanAnswers(self.folder), ask.__name__)(*args, **kwargs))

    return answer


class IndexAnswers:
    """What the index knows, with the files at hand to check it."""

    def __init__(self, db: sqlite3.Connection, folder: Folder) -> None:
        self._db = db
        self.folder = folder

    @property
    def unreadable(self) -> list[Unreadable]:
        try:
            rows = self._db.execute("SELECT job_id, error FROM unreadable ORDER BY job_id")
            return [Unreadable(*row) for row in rows]
        except _DAMAGED:
            return ScanAnswers(self.folder).unreadable

    @_or_scan
    def find(self, query: Query) -> list[Summary]:
        where, values = _conditions(query)
        # Sorted here: SQLite would copy every row once more, or look each one up by its order.
        rows = self._db.execute(f"SELECT {_SUMMARY} FROM jobs {where}", values).fetchall()
        rows.sort(key=_BY_ORDER)
        found = list(map(_summary, rows))
        if query.text is None:
            return found
        sure = self._with_text(query.text)
        return [s for s in found if sure.get(s.job_id) or self._reads_as(s, query, sure)]

    def bodies(self, query: Query) -> Iterator[Job]:
        for summary in self.find(query):
            job = self._read(summary.job_id)
            if job is not None and query.matches(job):
                yield job

    def stored(self, query: Query) -> Iterator[bytes]:
        """Read, but not parsed, where the file is still the one that the row was read from."""
        try:
            files = self._files(query)
        except _DAMAGED:
            yield from ScanAnswers(self.folder).stored(query)
            return
        for job_id, *known in files:
            try:
                data, state = self.folder.read(record_name(job_id), codec.MAX_RECORD_BYTES)
                changed = list(file_mark(state)) != known
                if changed and not query.matches(codec.decode_job(data, job_id)):
                    continue
            except (MamError, OSError):
                continue  # gone or broken since: the next look at the folder tells
            yield data

    def _files(self, query: Query) -> list[tuple[str, int, int, int]]:
        if query.text is not None:
            ids = {summary.job_id for summary in self.find(query)}
            return [row for row in self._files(query._replace(text=None)) if row[0] in ids]
        where, values = _conditions(query)
        sql = f'SELECT job_id, {FILE} FROM jobs {where} ORDER BY "order", job_id'
        return self._db.execute(sql, values).fetchall()

    @_or_scan
    def next_claimable(self, want: Want, facts: Facts) -> Job | None:
        sql, values = self._candidates(want, facts)
        sql += _IN_CLAIM_ORDER
        passed_over: set[str] = set()
        page = 1  # mostly the first row is the one; where files disagree, ever more are asked for
        while True:
            rows = self._db.execute(sql, (*values, page)).fetchall()
            for row in rows:
                if row[0] in passed_over:
                    continue
                job = self._verified(*row)
                if job is None:
                    break  # the row was wrong and is mended, which may change the order: ask again
                if may_claim(job, want, facts):
                    return job
                passed_over.add(job.job_id)
            else:
                if len(rows) < page:
                    return None
                page *= 4

    @_or_scan
    def ahead(self, want: Want, job: Summary, facts: Facts) -> int:
        sql, values = self._candidates(want, facts)
        turn = job.priority, job.priority, job.order, job.order, job.job_id
        found = self._db.execute(f"SELECT count(*) FROM ({sql}{_BEFORE})", (*values, *turn))
        return int(found.fetchone()[0])

    def status_of(self, job_id: str) -> Status | None:
        job = self._read(job_id)
        return job.status if job else None

    @_or_scan
    def running_in(self, group: str) -> int:
        sql = """SELECT count(*) FROM jobs WHERE status = 'running' AND "group" = ?"""
        return int(self._db.execute(sql, (encodable(group),)).fetchone()[0])

    @_or_scan
    def queued(self) -> dict[str, int]:
        # As the index of pending jobs has them: no job is looked at.
        sql = """SELECT agent_session, count(*) FROM jobs WHERE status = 'pending'
                 GROUP BY agent_session"""
        return {str(label): int(count) for label, count in self._db.execute(sql)}

    @_or_scan
    def has(self, kind: NameKind, name: str) -> bool:
        same = f'SELECT 1 FROM jobs WHERE "{kind}" = ?'
        return any(
            self._db.execute(f"{same}{where} LIMIT 1", (encodable(name),)).fetchone()
            for where in (f" AND {_LIVE}", "")
        )

    @_or_scan
    def names(self, kind: NameKind) -> list[str]:
        rows = self._db.execute(f'SELECT DISTINCT "{kind}" FROM jobs')
        return sorted(str(name) for (name,) in rows if name)

    @_or_scan
    def live_with_key(self, key: str) -> str | None:
        sql = f"SELECT job_id FROM jobs WHERE key = ? AND {_LIVE} {_OLDEST_FIRST}"
        return self._first(sql, (encodable(key),), lambda job: job.key == key)

    @_or_scan
    def live_twin(self, agent_session: str, prompt: str) -> str | None:
        same = "agent_session = ? AND prompt_sum = ?"
        sql = f"SELECT job_id FROM jobs WHERE {same} AND {_LIVE} {_OLDEST_FIRST}"
        values = (encodable(agent_session), prompt_sum(prompt))
        return self._first(sql, values, lambda job: job.prompt == prompt)

    @_or_scan
    def live_writer(self, path: str) -> str | None:
        there = "artifacts JOIN jobs USING (job_id)"
        sql = f"SELECT job_id FROM {there} WHERE path = ? AND {_LIVE} {_OLDEST_FIRST}"
        return self._first(sql, (encodable(path),), lambda job: path in job.artifact_paths)

    @_or_scan
    def awaited(self) -> frozenset[str]:
        sql = f"SELECT DISTINCT parent FROM parents JOIN jobs ON job_id = child WHERE {_LIVE}"
        return frozenset(row[0] for row in self._db.execute(sql))

    @_or_scan
    def ended(self) -> list[Summary]:
        return self.find(Query(statuses=ENDED))

    @_or_scan
    def last_order(self) -> int:
        return int(self._db.execute('SELECT max("order") FROM jobs').fetchone()[0] or 0)

    # -- checking against the files --------------------------------------------------------

    def _read(self, job_id: str) -> Job | None:
        try:
            return read_job(self.folder, job_id)[0]
        except (MamError, OSError):
            return None

    def _verified(self, job_id: str, inode: int, size: int, mtime_ns: int) -> Job | None:
        """The record behind a row, if the file is still the one that the row was read from."""
        try:
            job, state = read_job(self.folder, job_id)
        except (MamError, OSError) as problem:
            remove_rows(self._db, [job_id])
            with suppress(FileNotFoundError):
                bad = os.stat(record_name(job_id), dir_fd=self.folder.fd, follow_symlinks=False)
                write_unreadable(self._db, [(Unreadable(job_id, str(problem)), bad)])
            return None
        if file_mark(state) == (inode, size, mtime_ns):
            return job
        write_rows(self._db, [Written(job, state)])
        return None

    def _first(self, sql: str, values: tuple[Any, ...], test: Callable[[Job], bool]) -> str | None:
        for (job_id,) in self._db.execute(sql, values).fetchall():
            job = self._read(job_id)
            if job is not None and job.is_live and test(job):
                return job.job_id
        return None

    def _with_text(self, text: str) -> dict[str, bool | None]:
        """By id: True where the text is found, None where only the record can tell."""
        folded = encodable(text.casefold())
        sql = """SELECT job_id, whole FROM prompts
                 WHERE instr(folded, :text) OR instr(lower(job_id), :text) OR NOT whole"""
        hits = """SELECT instr(folded, :text) OR instr(lower(job_id), :text) FROM prompts
                  WHERE job_id = :job_id"""
        result: dict[str, bool | None] = {}
        for job_id, whole in self._db.execute(sql, {"text": folded}).fetchall():
            sure = whole or self._db.execute(hits, {"job_id": job_id, "text": folded}).fetchone()[0]
            result[job_id] = True if sure else None
        return result

    def _reads_as(self, summary: Summary, query: Query, sure: dict[str, bool | None]) -> bool:
        if summary.job_id not in sure:
            return False
        job = self._read(summary.job_id)
        return job is not None and query.matches(job)

    def _candidates(self, want: Want, facts: Facts) -> tuple[str, tuple[Any, ...]]:
        """Those that no rule of `claims` holds back, as far as the index can tell."""
        conditions = [_CANDIDATES]
        values: list[Any] = [encodable(want.agent_session), want.now]
        gates = facts.gates()
        if want.agents is not None:
            conditions.append(f"agent IN ({', '.join('?' * len(want.agents))})")
            values += map(encodable, want.agents)
        shut = [g for g in gates.closed if is_closed(g, want.now)]
        if any(g.kind is GateKind.ALL for g in shut):
            conditions.append("0")
        agents = [g.name for g in shut if g.kind is GateKind.AGENT]
        groups = [g.name for g in shut if g.kind is GateKind.GROUP]
        limited = {*want.slots, *gates.slots} - {*groups}
        for group in limited:
            limit = slots_of(group, gates, want.slots)
            if limit is not None and facts.running_in(group) >= limit:
                groups.append(group)
        if agents:
            conditions.append(f"agent NOT IN ({', '.join('?' * len(agents))})")
            values += map(encodable, agents)
        if groups:
            marks = ", ".join("?" * len(groups))
            conditions.append(f'("group" IS NULL OR "group" NOT IN ({marks}))')
            values += map(encodable, groups)
        return " AND ".join(conditions), tuple(values)


_STATUSES = {status.value: status for status in Status}
_REASONS = {reason.value: reason for reason in Reason}


def _summary(row: tuple[Any, ...]) -> Summary:
    return Summary._make((row[0], _STATUSES[row[1]], *row[2:12], _REASONS.get(row[12]), *row[13:]))


def _conditions(query: Query) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []
    if query.statuses:
        conditions.append(f"status IN ({', '.join('?' * len(query.statuses))})")
        values += query.statuses
    for column in ("agent_session", "group", "agent"):
        if (wanted := getattr(query, column)) is not None:
            conditions.append(f'"{column}" = ?')
            values.append(encodable(wanted))
    return (f"WHERE {' AND '.join(conditions)}" if conditions else ""), values
