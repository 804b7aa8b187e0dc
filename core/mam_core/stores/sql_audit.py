"""The audit log in the tables of a database: the same lines, numbered 1..n for each job.

What a transaction tells is written in it, apart from its changes; what is told on
its own is a transaction of its own. Writing never raises: a failure is a warning.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mam_core import codec
from mam_core.audit import warn
from mam_core.audit_base import Piece
from mam_core.audit_lines import PublishedLines, date_of, latest_date, published_seq
from mam_core.errors import MamError, RegistryMissing
from mam_core.records import Job, check_job_id
from mam_core.stores.sql_base import Database, Row, Statement
from mam_core.stores.sql_rows import storable

#: So many lines are asked for at once: most histories are shorter.
_PAGE = 200
_LAST = 2**62
#: How a line of ours begins; its date follows.
_DATE = b'{"timestamp": "'


def line_of(row: Row) -> bytes:
    """A line as it would stand in a file, its number in front."""
    n, verbatim, line = row
    return bytes(line) if verbatim else b'{"n": %d, %s' % (n, bytes(line)[1:])


def encoded(line: dict[str, Any]) -> bytes:
    """Without a number: that is given when it is written."""
    return codec.dumps_line({name: value for name, value in line.items() if name != "n"})


def dated(data: bytes) -> dict[str, Any]:
    """A line in the parts that its date is put between, see `DATE_IN_ORDER`; in one part where it
    has none of ours."""
    own = date_of(data) if data.startswith(_DATE) else ""
    cut, end = (len(_DATE), len(_DATE) + len(own)) if own else (len(data), len(data))
    return {
        "head": data[:cut],
        "date": data[cut:end],
        "rest": data[end:],
        "date_end": b'Z"',
        "latest": latest_date().encode("ascii"),
    }


def one_line(job_id: str, line: dict[str, Any]) -> Statement:
    return Statement("add_line", [{"job_id": job_id, **dated(encoded(line))}])


def first_lines(jobs: Sequence[Job], lines: Sequence[dict[str, Any]]) -> list[Statement]:
    """New histories, each with the record as registered."""
    begun = [_begun(job, line, None) for job, line in zip(jobs, lines, strict=True)]
    rows = [
        {"job_id": job.job_id, **dated(encoded(line))}
        for job, line in zip(jobs, lines, strict=True)
    ]
    return [Statement("begin_history", begun), Statement("add_line", rows)]


def _begun(job: Job, line: dict[str, Any], meta: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "began": storable(str(line.get("timestamp", ""))),
        "meta": codec.dumps(meta or job.redacted()),
        "status": None,
    }


def status_text(job: Job) -> bytes:
    return codec.dumps_line(
        {"job_id": job.job_id, "status": job.status, "updated_at": job.updated_at}
    )


class SqlAudit:
    """The histories of one registry. `path` holds the files of attempts on this host."""

    def __init__(self, database: Database, path: str) -> None:
        self.path = path
        self._database = database

    @property
    def kept_as(self) -> str:
        return f"history-{hashlib.sha256(self._database.place.encode()).hexdigest()[:12]}"

    # -- writing ---------------------------------------------------------------------------

    def begin(self, job: Job, line: dict[str, Any], *, meta: dict[str, Any] | None = None) -> bool:
        rows = [_begun(job, line, meta)]
        return self._tell(
            job.job_id, [Statement("begin_history", rows), *_lines(job.job_id, [line])]
        )

    def append(self, job_id: str, line: dict[str, Any], job: Job | None = None) -> bool:
        return self.append_all(job_id, [line])

    def append_all(self, job_id: str, lines: Sequence[dict[str, Any]]) -> bool:
        return self._tell(job_id, _lines(job_id, lines))

    def set_status(self, job: Job, *, meta: dict[str, Any] | None = None) -> bool:
        row = {
            "job_id": job.job_id,
            "began": job.updated_at,
            "meta": codec.dumps(meta) if meta else None,
            "status": status_text(job),
        }
        return self._tell(job.job_id, [Statement("begin_history", [row])])

    def _tell(self, job_id: str, statements: Sequence[Statement]) -> bool:
        try:
            check_job_id(job_id)
            with self._database.writing(create=True) as change:
                return change.finish((), statements)
        except (OSError, MamError, TypeError, ValueError) as problem:
            warn(f"the audit log of job {job_id} misses a line: {problem}")
            return False

    # -- reading ---------------------------------------------------------------------------

    def meta(self, job_id: str) -> dict[str, Any] | None:
        rows = self._ask("meta", job_id=storable(job_id))
        return _parsed(rows[0][0]) if rows and rows[0][0] is not None else None

    def status(self, job_id: str) -> dict[str, Any] | None:
        rows = self._ask("logged_status", job_id=storable(job_id))
        if not rows:
            return None
        status, updated_at, told, archived = rows[-1]
        if status is not None:
            return {"job_id": job_id, "status": status, "updated_at": updated_at}
        if archived is not None and (body := _parsed(archived)) is not None:
            return {name: body.get(name) for name in ("job_id", "status", "updated_at")}
        return _parsed(told) if told is not None else None

    def lines(self, job_id: str) -> Iterator[bytes]:
        n = 0
        while rows := self._ask("lines_after", job_id=storable(job_id), n=n, limit=_PAGE):
            n = rows[-1][0]
            yield from map(line_of, rows)
            if len(rows) < _PAGE:
                return

    def events(self, job_id: str) -> Iterator[dict[str, Any]]:
        for raw in self.lines(job_id):
            if (line := _object(raw)) is not None:
                yield line

    def news(self, job_id: str, since: int | None, reach: int) -> tuple[int, list[bytes]]:
        """A place is the number of the last line that was read."""
        found: list[bytes] = []
        last = size = 0
        for row in self._backwards(job_id):
            raw = line_of(row)
            last = last or row[0]
            size += len(raw)
            if since is not None and row[0] <= since <= last:
                break
            if size > reach:
                break
            found.append(raw.rstrip(b"\n"))
        return last, found[::-1]

    def has(self, job_id: str) -> bool:
        return bool(self._ask("has_history", job_id=check_job_id(job_id)))

    def job_ids(self) -> list[str]:
        return [row[0] for row in self._ask("logged_jobs")]

    def published_since(self, job_id: str, seq: int) -> set[int]:
        told: set[int] = set()
        for row in self._backwards(job_id):
            number = published_seq(bytes(row[2]))
            if number is None:
                continue
            if number < seq:  # a relay goes by the numbers: before this one there is none of them
                break
            told.add(number)
        return told

    def published(self, job_id: str, seqs: Collection[int]) -> dict[int, bytes]:
        found = PublishedLines(seqs)
        for row in self._backwards(job_id):
            if found.is_done(bytes(row[2])):
                break
        return found.lines

    @contextmanager
    def logs(self) -> Iterator[SqlLogs]:
        yield SqlLogs(self._database)

    def _backwards(self, job_id: str) -> Iterator[Row]:
        n, page = _LAST, 8  # most that is looked for stands at the end
        while rows := self._ask("lines_before", job_id=storable(job_id), n=n, limit=page):
            yield from rows
            if len(rows) < page:
                return
            n, page = rows[-1][0], _PAGE

    def _ask(self, name: str, **values: Any) -> list[Row]:
        return _asked(self._database, name, **values)


class SqlLogs:
    """All histories, piece by piece; a place in one is a line's number."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def names(self) -> Iterator[str]:
        yield from (row[0] for row in _asked(self._database, "logged_jobs"))

    def sizes(self, job_ids: Iterable[str] | None = None) -> dict[str, int]:
        if job_ids is None:
            empty = dict.fromkeys(self.names(), 0)
            return empty | {row[0]: int(row[1]) for row in _asked(self._database, "last_lines")}
        return {
            job_id: int(_asked(self._database, "last_line", job_id=storable(job_id))[0][0] or 0)
            for job_id in job_ids
        }

    def meta(self, job_id: str) -> dict[str, Any] | None:
        rows = _asked(self._database, "meta", job_id=storable(job_id))
        return _parsed(rows[0][0]) if rows and rows[0][0] is not None else None

    def pieces(self, job_id: str, since: int = 0) -> Iterator[Piece]:
        values = {"job_id": storable(job_id), "limit": _PAGE}
        while rows := _asked(self._database, "lines_after", n=since, **values):
            since = rows[-1][0]
            lines = [_object(line_of(row)) for row in rows]
            whole = [line for line in lines if line is not None]
            yield Piece(whole, since, len(lines) - len(whole))
            if len(rows) < _PAGE:
                return


def _lines(job_id: str, lines: Sequence[dict[str, Any]]) -> list[Statement]:
    """A history that was never begun gets a place among the others by its first line."""
    if not lines:
        return []
    begun = {"job_id": job_id, "began": storable(str(lines[0].get("timestamp", "")))}
    rows = [{"job_id": job_id, **dated(encoded(line))} for line in lines]
    return [Statement("name_history", [begun]), Statement("add_line", rows)]


def _asked(database: Database, name: str, **values: Any) -> list[Row]:
    """Where there is no registry, nothing was ever logged."""
    try:
        with database.reading() as talk:
            return talk.ask(name, **values)
    except RegistryMissing:
        return []


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        return codec.loads(bytes(data))
    except MamError:
        return None


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None
