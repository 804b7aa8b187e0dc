"""The columns of the sessions' table. Text from outside leaves here harmless."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mam_core.safe_text import one_line
from mam_tui.laying import Column, Columns, Look
from mam_tui.moments import size, span
from mam_tui.sessions.rows import SessionRow

_MOST_OF_THE_WORDS = 400


def _state(row: SessionRow, look: Look) -> str:
    face = row.face
    return f"{face.ascii if look.ascii else face.glyph} {face.word}"


def _job(row: SessionRow, look: Look) -> str:
    more = len(row.seen.jobs) - 1
    return one_line(row.job_id) + (f" +{more}" if more > 0 else "")


def _queue(row: SessionRow, look: Look) -> str:
    return str(row.seen.queued) if row.label else ""


def _cpu(row: SessionRow, look: Look) -> str:
    return "" if row.cpu is None else f"{row.cpu:.0%}"


def _age(row: SessionRow, look: Look) -> str:
    return "" if row.begun is None else span(look.now - row.begun)


def _says(row: SessionRow, look: Look) -> str:
    return one_line(row.says[:_MOST_OF_THE_WORDS])


_ALL: tuple[Column[SessionRow], ...] = (
    Column("state", "STATE", 12, 100, _state, lambda row: row.face.rank),
    Column("name", "SESSION", 10, 95, lambda row, _: one_line(row.name), lambda row: row.name),
    Column("label", "LABEL", 14, 45, lambda row, _: one_line(row.label), lambda row: row.label),
    Column(
        "agent",
        "AGENT",
        12,
        75,
        lambda row, _: one_line(row.seen.agent),
        lambda row: row.seen.agent,
    ),
    Column("mode", "MODE", 11, 40, lambda row, _: one_line(row.mode), lambda row: row.mode),
    Column("job", "JOB", 10, 85, _job, lambda row: row.job_id or None),
    Column("queue", "QUEUE", 5, 80, _queue, lambda row: row.seen.queued, right=True),
    Column(
        "memory",
        "MEMORY",
        8,
        60,
        lambda row, _: size(row.seen.memory),
        lambda row: row.seen.memory,
        right=True,
    ),
    Column("cpu", "CPU", 5, 65, _cpu, lambda row: row.cpu, right=True),
    Column("age", "AGE", 5, 70, _age, lambda row: row.begun, right=True, by_clock=True),
    Column("branch", "WORKTREE", 16, 50, lambda row, _: one_line(row.branch), lambda r: r.branch),
    Column("folder", "FOLDER", 24, 55, lambda row, _: one_line(row.folder), lambda row: row.folder),
    Column("says", "SAYS", 20, 72, _says, lambda row: row.says or None),
)
COLUMNS: Mapping[str, Column[SessionRow]] = {column.name: column for column in _ALL}
SESSION_COLUMNS = Columns(
    COLUMNS, last="says", or_else="folder", seldom_used=("label", "says", "branch")
)


def sort_key(row: SessionRow, name: str) -> Any:
    return COLUMNS[name].key(row)
