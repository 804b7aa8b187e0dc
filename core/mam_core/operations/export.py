"""Jobs into a file of one's own: a table for a spreadsheet, records for programs, or pages to read.

Secrets stay behind. A job whose record is gone is written as the audit log has it. What a
spreadsheet would take for a formula is written as text, since prompts come from anywhere.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mam_core import codec
from mam_core.clock import stamp
from mam_core.errors import InvalidField, JobNotFound, MamError, UnreadableRecord
from mam_core.operations.record import record
from mam_core.registry import Registry
from mam_core.replay.entries import first_entry, with_line

if TYPE_CHECKING:
    from mam_core.operations.evidence import Services

_Row = Mapping[str, Any]
_Writer = TypeVar("_Writer")

#: In the order of a table that people read.
COLUMNS = (
    *("job_id", "status", "reason", "detail", "agent", "agent_session", "group", "priority"),
    *("attempt", "failures", "created_at", "started_at", "ended_at", "node", "workdir", "prompt"),
)
#: Also after white space that a spreadsheet skips, and as the wide letters that some read alike.
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_SKIPPED = "\t\r\n\0"


class CannotExport(MamError):
    """The file could not be written."""

    title = "Export"


def export(
    registry: Registry, job_ids: Sequence[str], path: str, services: Services | None = None
) -> str:
    """Write these jobs, in this order, to a new file; its ending says how. What was done, in words.

    What can be read nowhere is left out and counted. An existing file is never written over.
    `services` know who serves pending jobs, which pages tell.
    """
    if services is not None and os.path.splitext(path)[1].lower() == ".md":
        written: Callable[[Registry, Sequence[_Row]], bytes] = partial(_as_pages, services=services)
    else:
        written = _writer(path, _WRITERS)
    jobs, from_log = [], 0
    for job_id in job_ids:
        try:
            jobs.append(registry.get(job_id).redacted())
        except UnreadableRecord:
            continue
        except JobNotFound:
            if (logged := _from_log(registry, job_id)) is not None:
                jobs.append(logged)
                from_log += 1
    place = create(path, written(registry, jobs))
    left = len(job_ids) - len(jobs)
    gone = f"; {from_log} without a record, as the audit log has it" if from_log else ""
    left_out = f"; {left} could not be read" if left else ""
    return f"{_count(jobs, 'job')} in {place}{gone}{left_out}"


def export_rows(rows: Sequence[Mapping[str, object]], path: str, what: str) -> str:
    """Anything else that is listed, row by row, to a new table or as JSON; `what` one row is."""
    written = _writer(path, _ROW_WRITERS)
    return f"{_count(rows, what)} in {create(path, written(rows))}"


def _writer(path: str, known: Mapping[str, _Writer]) -> _Writer:
    written = known.get(os.path.splitext(path)[1].lower())
    if written is None:
        raise InvalidField(f"{path} must end in {' or '.join(sorted(known))}")
    return written


def _count(rows: Sequence[object], what: str) -> str:
    return f"1 {what} is" if len(rows) == 1 else f"{len(rows)} {what}s are"


def _from_log(registry: Registry, job_id: str) -> dict[str, Any] | None:
    """As it was registered, and as far as it got; None: there is no log of it either."""
    try:
        values = record(registry, job_id).values
    except MamError:
        return None
    entry = first_entry(job_id, values)
    for line in registry.store.audit.events(job_id):
        entry = with_line(entry, line)
    began, ended = entry.started_at, entry.ended_at
    return {
        **values,
        "job_id": job_id,
        "status": entry.status,
        "reason": entry.reason or None,
        "detail": entry.detail or None,
        "attempt": entry.attempts,
        "started_at": None if began is None else stamp(began),
        "ended_at": None if ended is None else stamp(ended),
    }


def _as_csv(_: Registry, jobs: Sequence[_Row]) -> bytes:
    return _table(COLUMNS, jobs)


def _rows_as_csv(rows: Sequence[_Row]) -> bytes:
    return _table(tuple(dict.fromkeys(name for row in rows for name in row)), rows)


def _table(columns: Sequence[str], rows: Sequence[_Row]) -> bytes:
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(columns)
    for row in rows:
        table.writerow([_cell(row.get(name)) for name in columns])
    return text.getvalue().encode("utf-8", "replace")


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    acts = text.startswith((*_FORMULA, *_SKIPPED)) or text.lstrip().startswith(_FORMULA)
    return f"'{text}" if acts and not _is_number(text) else text


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdecimal()


def _as_json(_: Registry, jobs: Sequence[_Row]) -> bytes:
    return _rows_as_json(jobs)


def _rows_as_json(rows: Sequence[_Row]) -> bytes:
    lines = b",\n".join(codec.dumps_line(dict(row)).rstrip() for row in rows)
    return b"[\n" + lines + b"\n]\n" if rows else b"[]\n"


def _as_pages(registry: Registry, jobs: Sequence[_Row], services: Services | None = None) -> bytes:
    from mam_core.operations.reports.job_markdown import report  # a table needs none of it
    from mam_core.operations.why import Reasons

    reasons = Reasons(registry, services)
    pages = [report(registry, str(job["job_id"]), reasons) for job in jobs]
    return "\n---\n\n".join(pages).encode("utf-8", "replace")


_WRITERS: Mapping[str, Callable[[Registry, Sequence[_Row]], bytes]] = {
    ".csv": _as_csv,
    ".json": _as_json,
    ".md": _as_pages,
}
_ROW_WRITERS: Mapping[str, Callable[[Sequence[_Row]], bytes]] = {
    ".csv": _rows_as_csv,
    ".json": _rows_as_json,
}


def create(path: str, data: bytes) -> str:
    """A new file that only its owner reads; the answer is where it is. Raises `CannotExport`."""
    place = os.path.abspath(os.path.expanduser(path))
    try:
        fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise CannotExport(f"{place} is there already: name another file") from None
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise CannotExport(f"{place} cannot be written: {why}") from None
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
    except OSError as problem:
        os.unlink(place)
        why = (problem.strerror or str(problem)).lower()
        raise CannotExport(f"{place} cannot be written: {why}") from None
    return place
