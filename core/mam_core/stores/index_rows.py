"""Rows of the index, written from records."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from mam_core.clock import parse_stamp
from mam_core.records import HEAD_CHARS, Job, Unreadable, claim_order
from mam_core.stores.catalogue import Written

FILE = "inode, size, mtime_ns"
_FIXED = (
    'agent, agent_session, "group", priority, "order", created_at, head, key, prompt_sum, '
    "not_before, parents"
)
_MOVING = (
    "status, attempt, updated_at, started_at, ended_at, reason, cancel_requested_at, last_seq, "
    + FILE
)
_MOVE_ROW = (
    f"UPDATE jobs SET {_MOVING.replace(',', ' = ?,')} = ? "
    f"WHERE job_id = ? AND {_FIXED.replace(',', ' IS ? AND')} IS ?"
)
_WRITE_ROW = (
    f"INSERT OR REPLACE INTO jobs (job_id, {_FIXED}, {_MOVING}) VALUES ({', '.join('?' * 23)})"
)

#: So much of a prompt is kept for the text filter; of a longer one the record is read.
_FOLDED = 4000


def write_rows(db: sqlite3.Connection, written: Sequence[Written]) -> None:
    for item in written:
        fixed, moving = _columns(item)
        try:
            _write_row(db, item.job, fixed, moving)
        except UnicodeEncodeError:
            # A lone surrogate of a foreign record: SQLite keeps its escape, the file the truth.
            _write_row(db, item.job, _encodable_all(fixed), _encodable_all(moving))


def _write_row(
    db: sqlite3.Connection, job: Job, fixed: tuple[Any, ...], moving: tuple[Any, ...]
) -> None:
    if job.revision > 1:  # a claim, a heartbeat, an end: mostly nothing else has changed
        moved = db.execute(_MOVE_ROW, (*moving, job.job_id, *fixed))
        if moved.rowcount == 1:
            return
    db.execute(_WRITE_ROW, (job.job_id, *fixed, *moving))
    folded = encodable(job.prompt.casefold())
    prompt = (job.job_id, folded[:_FOLDED], len(folded) <= _FOLDED)
    db.execute("INSERT OR REPLACE INTO prompts VALUES (?, ?, ?)", prompt)
    db.execute("DELETE FROM parents WHERE child = ?", (job.job_id,))
    for parent in job.after:
        pair = (job.job_id, encodable(parent))
        db.execute("INSERT OR REPLACE INTO parents VALUES (?, ?)", pair)


def write_unreadable(
    db: sqlite3.Connection, bad: Iterable[tuple[Unreadable, os.stat_result]]
) -> None:
    db.executemany(
        "INSERT OR REPLACE INTO unreadable VALUES (?, ?, ?, ?, ?)",
        [(u.job_id, u.error, s.st_ino, s.st_size, s.st_mtime_ns) for u, s in bad],
    )


def remove_rows(db: sqlite3.Connection, job_ids: Sequence[str]) -> None:
    gone = [(job_id,) for job_id in job_ids]
    for table, column in (
        ("jobs", "job_id"),
        ("unreadable", "job_id"),
        ("prompts", "job_id"),
        ("parents", "child"),
    ):
        db.executemany(f"DELETE FROM {table} WHERE {column} = ?", gone)


def forget_unreadable(db: sqlite3.Connection, job_ids: Iterable[str]) -> None:
    """These can be read again."""
    mended = [(job_id,) for job_id in job_ids]
    db.executemany("DELETE FROM unreadable WHERE job_id = ?", mended)


def _columns(item: Written) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What only an edit changes, and what every step of a job changes; as `_FIXED`, `_MOVING`."""
    job, state = item
    fixed = (
        job.agent,
        job.agent_session,
        job.group,
        job.priority,
        claim_order(job),
        job.created_at,
        job.prompt[:HEAD_CHARS],
        job.key,
        prompt_sum(job.prompt),
        _moment(job.not_before),
        " ".join(job.after),
    )
    moving = (
        job.status,
        job.attempt,
        job.updated_at,
        job.started_at,
        job.ended_at,
        job.reason,
        job.cancel_requested_at,
        job.last_seq,
        state.st_ino,
        state.st_size,
        state.st_mtime_ns,
    )
    return fixed, moving


def prompt_sum(prompt: str) -> int:
    """A quick sum to find twins by; whoever acts on a match compares the prompts themselves."""
    return zlib.crc32(prompt.encode("utf-8", "surrogatepass"))


def _moment(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_stamp(text)
    except ValueError:
        return float("inf")


def _encodable_all(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(encodable, values))


def encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value
