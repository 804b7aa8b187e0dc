"""Rows of the index, written from records."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mam_core.errors import StoreError
from mam_core.records import Job
from mam_core.stores.catalogue import Written, encodable
from mam_core.summaries import HEAD_CHARS, Unreadable, claim_order, kept_timeout, moment_of

#: What a damaged index, or one that is deleted under us, makes of a question. A page of garbage
#: can still be a database: then its values are of the wrong kind.
BROKEN_INDEX = (sqlite3.Error, OSError, StoreError, TypeError, ValueError, KeyError, OverflowError)

FILE = "inode, size, mtime_ns"
_FIXED = (
    'agent, agent_session, "group", priority, "order", created_at, head, key, prompt_sum, '
    "not_before, parents, artifacts, timeout_sec"
)
_MOVING = (
    "status, attempt, updated_at, started_at, ended_at, reason, cancel_requested_at, last_seq, "
    "node, " + FILE
)
_NEW_MOVING = _MOVING.replace(",", " = ?,") + " = ?"
_SAME_FIXED = _FIXED.replace(",", " IS ? AND") + " IS ?"
#: While a job is live, two of its indexes are left as they are: `live` is not written.
_MOVE_ROW = f"UPDATE jobs SET {_NEW_MOVING} WHERE job_id = ? AND live AND {_SAME_FIXED}"
_END_ROW = f"UPDATE jobs SET live = 0, {_NEW_MOVING} WHERE job_id = ? AND {_SAME_FIXED}"
_VALUES = f"INTO jobs (job_id, live, {_FIXED}, {_MOVING}) VALUES ({', '.join('?' * 27)})"
_NEW_ROW = f"INSERT OR IGNORE {_VALUES}"
_WRITE_ROW = f"INSERT OR REPLACE {_VALUES}"

_WRITE_PROMPT = "INSERT OR REPLACE INTO prompts VALUES (?, ?, ?)"

Columns = tuple[Any, ...]

#: So much of a prompt is kept for the text filter; of a longer one the record is read.
_FOLDED = 4000


class State(NamedTuple):
    """The one row of the table `state`."""

    seal: int
    looked_at: float
    look_took: float
    fine: int

    @classmethod
    def of(cls, db: sqlite3.Connection) -> State:
        return cls._make(
            db.execute("SELECT seal, looked_at, look_took, fine FROM state").fetchone()
        )


def write_rows(db: sqlite3.Connection, written: Sequence[Written]) -> None:
    rows = [(item.job, *_columns(item)) for item in written]
    try:
        _write(db, rows)
    except UnicodeEncodeError:
        # A lone surrogate of a foreign record: SQLite keeps its escape, the file the truth.
        _write(
            db, [(job, _encodable_all(fixed), _encodable_all(rest)) for job, fixed, rest in rows]
        )


def _write(db: sqlite3.Connection, rows: Sequence[tuple[Job, Columns, Columns]]) -> None:
    if len(rows) == 1 and _move(db, *rows[0]):
        return
    ids = [(job.job_id,) for job, _, _ in rows]
    values = [(job.job_id, job.is_live, *fixed, *moving) for job, fixed, moving in rows]
    if db.executemany(_NEW_ROW, values).rowcount < len(values):
        db.executemany(_WRITE_ROW, values)
        db.executemany("DELETE FROM parents WHERE child = ?", ids)
        db.executemany("DELETE FROM artifacts WHERE job_id = ?", ids)
    db.executemany(_WRITE_PROMPT, [_prompt(job) for job, _, _ in rows])
    db.executemany("DELETE FROM unreadable WHERE job_id = ?", ids)
    if parents := [(job.job_id, encodable(above)) for job, _, _ in rows for above in job.after]:
        db.executemany("INSERT OR REPLACE INTO parents VALUES (?, ?)", parents)
    if places := [
        (encodable(path), job.job_id) for job, _, _ in rows for path in job.artifact_paths
    ]:
        db.executemany("INSERT OR REPLACE INTO artifacts VALUES (?, ?)", places)


def _move(db: sqlite3.Connection, job: Job, fixed: Columns, moving: Columns) -> bool:
    """A claim, a heartbeat, an end: mostly nothing else has changed, and one statement does."""
    if job.revision <= 1:
        return False
    move = _MOVE_ROW if job.is_live else _END_ROW
    return db.execute(move, (*moving, job.job_id, *fixed)).rowcount == 1


def _prompt(job: Job) -> tuple[str, str, bool]:
    folded = encodable(job.prompt.casefold())
    return job.job_id, folded[:_FOLDED], len(folded) <= _FOLDED


def write_unreadable(
    db: sqlite3.Connection, bad: Iterable[tuple[Unreadable, os.stat_result]]
) -> None:
    db.executemany(
        "INSERT OR REPLACE INTO unreadable VALUES (?, ?, ?, ?, ?)",
        [(u.job_id, encodable(u.error), *file_mark(s)[:2], -s.st_ctime_ns) for u, s in bad],
    )


def remove_rows(db: sqlite3.Connection, job_ids: Sequence[str]) -> None:
    gone = [(job_id,) for job_id in job_ids]
    for table, column in (
        ("jobs", "job_id"),
        ("unreadable", "job_id"),
        ("prompts", "job_id"),
        ("parents", "child"),
        ("artifacts", "job_id"),
    ):
        db.executemany(f"DELETE FROM {table} WHERE {column} = ?", gone)


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
        moment_of(job.not_before),
        " ".join(job.after),
        "\0".join(job.artifact_paths),
        kept_timeout(job.timeout_sec),
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
        job.node,
        *file_mark(state),
    )
    return fixed, moving


def prompt_sum(prompt: str) -> int:
    """A quick sum to find twins by; whoever acts on a match compares the prompts themselves."""
    return zlib.crc32(prompt.encode("utf-8", "surrogatepass"))


def _encodable_all(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(encodable, values))


def file_mark(state: os.stat_result) -> tuple[int, int, int]:
    """By what a row knows its file again; SQLite's numbers have a bit less than an inode's."""
    return state.st_ino & (2**63 - 1), state.st_size, state.st_mtime_ns
