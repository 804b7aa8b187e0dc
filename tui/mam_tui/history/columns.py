"""The columns of the history: of the jobs that were, and of what persons did.

A row that has not been read yet is drawn, too, as such. Text from outside leaves here
harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from mam_core.operations.history import Act, Entry, Historic
from mam_core.records import Status
from mam_core.safe_text import one_line
from mam_tui.faces import Face, face_of
from mam_tui.laying import Column, Columns, Look
from mam_tui.moments import count, day_and_time, money, span

JobRow = Historic | None
ActRow = Act | None

_MOST_CHARS = 400


def is_pending(row: JobRow) -> bool:
    return row is not None and row.entry.status == Status.PENDING


def face_of_job(row: JobRow, blocked: Collection[str] = ()) -> Face:
    """How it ended, or where its log left it. Whether a pending job is `blocked` is in no log."""
    if row is None:
        return face_of("reading")
    if is_pending(row):
        return face_of("blocked" if row.entry.job_id in blocked else "queued")
    return face_of(row.entry.status or "unknown")


def _text(of: Callable[[Entry], Any]) -> Callable[[JobRow, Look], str]:
    def text(row: JobRow, look: Look) -> str:
        value = of(row.entry) if row is not None else None
        return one_line(str(value)[:_MOST_CHARS]) if value else ""

    return text


def _at(of: Callable[[Entry], float | None]) -> Callable[[JobRow, Look], str]:
    return lambda row, look: _moment(of(row.entry) if row is not None else None, look)


def _moment(at: float | None, look: Look) -> str:
    """Without the year, where it is this one."""
    if not at:
        return ""
    told, now = day_and_time(at), day_and_time(look.now)
    return told[5:16] if told[:4] == now[:4] else told[:10]


def _state(row: JobRow, look: Look, blocked: Collection[str]) -> str:
    face = face_of_job(row, blocked)
    return f"{face.ascii if look.ascii else face.glyph} {one_line(face.word[:40])}"


def record_word(row: JobRow) -> str:
    """What became of its record; empty: it is there."""
    if row is None or row.exists:
        return ""
    return "cleaned" if row.entry.archived else "gone"


def _record(row: JobRow, look: Look) -> str:
    word = record_word(row)
    glyph = ("o" if look.ascii else "◌") if word else ""
    return f"{glyph} {word}".strip()


def _took(row: JobRow, look: Look) -> str:
    if row is None or row.entry.started_at is None or row.entry.ended_at is None:
        return ""
    return span(row.entry.ended_at - row.entry.started_at)


def _key(row: Any) -> Any:
    """Their order is always the same: the newest first."""
    return None


_JOBS: tuple[Column[JobRow], ...] = (
    Column("record", "RECORD", 9, 98, _record, _key),
    Column("id", "JOB", 14, 90, _text(lambda e: e.job_id), _key),
    Column("changed", "NEWEST", 11, 80, _at(lambda e: e.changed_at), _key),
    Column("agent", "AGENT", 12, 70, _text(lambda e: e.agent), _key),
    Column("session", "SESSION", 14, 50, _text(lambda e: e.agent_session), _key),
    Column("group", "GROUP", 10, 30, _text(lambda e: e.group), _key),
    Column("attempts", "TRIES", 5, 60, _text(lambda e: e.attempts), _key, right=True),
    Column("began", "BEGAN", 11, 55, _at(lambda e: e.started_at), _key),
    Column("ended", "ENDED", 11, 45, _at(lambda e: e.ended_at), _key),
    Column("took", "TOOK", 5, 65, _took, _key, right=True),
    Column(
        *("tokens", "TOKENS", 6, 40),
        lambda row, _: count(row.entry.tokens) if row is not None else "",
        _key,
        right=True,
    ),
    Column(
        *("cost", "COST", 7, 42),
        lambda row, _: money(row.entry.cost) if row is not None else "",
        _key,
        right=True,
    ),
    Column("why", "WHY", 12, 58, _text(lambda e: e.reason), _key),
    Column("prompt", "PROMPT", 0, 99, _text(lambda e: e.head), _key),
)
_SELDOM = ("record", "group", "tokens", "cost", "why")


def job_columns(blocked: Callable[[], Collection[str]]) -> Columns[JobRow]:
    """`blocked`: the ids of jobs that something keeps from being claimed now."""
    state = Column[JobRow](
        "state", "STATE", 12, 100, lambda row, look: _state(row, look, blocked()), _key
    )
    return Columns(
        {column.name: column for column in (state, *_JOBS)},
        last="prompt",
        least_of_the_last=24,
        seldom_used=_SELDOM,
    )


def used_by(row: Historic) -> set[str]:
    """Of the columns that are seldom used, those in which something of it stands."""
    entry = row.entry
    stands: Mapping[str, Any] = {
        "record": record_word(row),
        "group": entry.group,
        "tokens": entry.tokens is not None,
        "cost": entry.cost is not None,
        "why": entry.reason,
    }
    return {name for name in _SELDOM if stands[name]}


# -- acts ------------------------------------------------------------------------------------


def _of_act(of: Callable[[Act], str]) -> Callable[[ActRow, Look], str]:
    return lambda row, _: one_line(of(row)[:_MOST_CHARS]) if row is not None else ""


def _when(row: ActRow, look: Look) -> str:
    return day_and_time(row.at) if row is not None else "…"


_ACTS: tuple[Column[ActRow], ...] = (
    Column("when", "WHEN", 19, 100, _when, _key),
    Column("who", "WHO", 14, 90, _of_act(lambda act: act.by), _key),
    Column("what", "WHAT", 12, 95, _of_act(lambda act: act.verb), _key),
    Column("id", "JOB", 14, 92, _of_act(lambda act: act.job_id), _key),
    Column("words", "WORDS", 0, 80, _of_act(lambda act: act.words), _key),
)
ACT_COLUMNS = Columns(
    {column.name: column for column in _ACTS}, last="words", least_of_the_last=8, or_else="id"
)
