"""The board's columns: what each shows of a row, how wide it is, by what it sorts.

Text that came from outside leaves here harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mam_core.limits import Limit
from mam_core.records import Status
from mam_core.safe_text import one_line
from mam_tui.laying import Column, Columns, Look
from mam_tui.moments import count, mebibytes, money, seconds, span, whole_minutes
from mam_tui.rows import Row

_MARKED_LIMITS = (Limit.IDLE, Limit.TOOL)
#: The order that a person needs who comes back to the screen: what waits for them first.
BY_URGENCY = "state"


def _summary_text(name: str) -> Callable[[Row, Look], str]:
    def text(row: Row, look: Look) -> str:
        value = getattr(row.summary, name) if row.summary else None
        return one_line(str(value)) if value else ""

    return text


def _summary_key(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row.summary, name) if row.summary else None


def _state(row: Row, look: Look) -> str:
    face = row.face
    if row.is_doubtful(look.now):
        # Without its sign, and with its age: a guess does not look like a fact.
        ago = whole_minutes(look.now - row.seen_at) if row.seen_at else "?"
        return f"{face.word} {ago}"
    return f"{face.ascii if look.ascii else face.glyph} {face.word}"


def _age(row: Row, look: Look) -> str:
    """To the second only while it runs: of the others the lines are drawn again once a minute."""
    created = seconds(row.summary.created_at) if row.summary else None
    if created is None:
        return ""
    age = look.now - created
    return span(age) if row.is_running else whole_minutes(age)


def _run_time(row: Row, look: Look) -> str:
    if row.summary is None:
        return ""
    started, ended = seconds(row.summary.started_at), seconds(row.summary.ended_at)
    if started is None or (ended is None and not row.is_running):
        return ""
    return span((look.now if ended is None else ended) - started)


def _run_key(row: Row) -> Any:
    return seconds(row.summary.started_at) if row.summary else None


def _left(row: Row, look: Look) -> str:
    """Until the limit that ends it next: by its wall clock, or `i` by its idle clock, `t` by that
    of a tool call. One that is late is ended any moment."""
    deadline = _deadline(row)
    if deadline is None:
        return ""
    if row.live.limit in _MARKED_LIMITS:
        left = max(0.0, deadline - look.now)
        return f"{row.live.limit[0]}{span(left) if left < 60 else whole_minutes(left)}"
    return span(deadline - look.now)


def _deadline(row: Row) -> float | None:
    if row.summary is None or not row.is_running:
        return None
    if row.live.ends_at:
        return row.live.ends_at
    started = seconds(row.summary.started_at)
    return None if started is None else started + row.summary.timeout_sec


def _idle(row: Row, look: Look) -> str:
    if not row.is_running:
        return ""
    heard = row.live.heard_at or row.live.at
    return span(look.now - heard) if heard else ""


def _progress(row: Row, look: Look) -> str:
    return "" if row.live.progress is None else f"{row.live.progress:.0%}"


def _memory(row: Row, look: Look) -> str:
    """Its peak, and what it takes up now while it runs."""
    peak, now = row.live.peak_memory, row.live.memory
    if peak is None:
        return ""
    return f"{mebibytes(peak)}/{mebibytes(now)}" if row.is_running and now else mebibytes(peak)


def _last_event(row: Row, look: Look) -> str:
    live = row.live
    if row.summary is not None and row.summary.status is Status.PENDING:
        if why := row.why(look.now):
            return one_line(why[:400])
    elif live.words and row.word in ("waiting", "lost", "stale"):
        return one_line(live.words[:400])
    if row.summary is not None and row.summary.status.is_ended:
        return one_line(row.summary.reason or "")
    return one_line(f"{live.event} {live.detail[:400]}".strip())


def _prompt(row: Row, look: Look) -> str:
    if row.summary is None:
        return one_line(row.trouble[:400])
    return one_line(row.summary.head)


def _attempt(row: Row, look: Look) -> str:
    return str(row.summary.attempt) if row.summary and row.summary.attempt else ""


def _rank(row: Row) -> Any:
    return row.face.rank


_ALL: tuple[Column[Row], ...] = (
    Column("state", "STATE", 12, 100, _state, _rank),
    Column("id", "JOB", 8, 90, lambda row, _: one_line(row.job_id), lambda row: row.job_id),
    Column("agent", "AGENT", 12, 70, _summary_text("agent"), _summary_key("agent")),
    Column(
        "session",
        "SESSION",
        14,
        66,
        _summary_text("agent_session"),
        _summary_key("agent_session"),
    ),
    Column("group", "GROUP", 10, 20, _summary_text("group"), _summary_key("group")),
    Column("node", "NODE", 10, 15, _summary_text("node"), _summary_key("node")),
    Column("attempt", "TRY", 3, 45, _attempt, _summary_key("attempt"), right=True),
    Column("age", "AGE", 5, 80, _age, _summary_key("created_at"), right=True, by_clock=True),
    Column("run", "RUN", 5, 65, _run_time, _run_key, right=True, by_clock=True),
    Column("left", "LEFT", 5, 48, _left, _deadline, right=True, by_clock=True),
    Column(
        "idle",
        "IDLE",
        5,
        55,
        _idle,
        lambda row: row.live.heard_at or None,
        right=True,
        by_clock=True,
    ),
    Column("progress", "DONE", 4, 30, _progress, lambda row: row.live.progress, right=True),
    Column(
        "tokens",
        "TOKENS",
        6,
        40,
        lambda row, _: count(row.live.tokens),
        lambda row: row.live.tokens,
        right=True,
    ),
    Column(
        "cost",
        "COST",
        7,
        35,
        lambda row, _: money(row.live.cost),
        lambda row: row.live.cost,
        right=True,
    ),
    Column("memory", "MEMORY", 11, 32, _memory, lambda row: row.live.peak_memory, right=True),
    Column("event", "LAST EVENT", 16, 50, _last_event, lambda row: row.live.heard_at or None),
    Column("prompt", "PROMPT", 0, 99, _prompt, lambda row: row.summary and row.summary.head),
)
COLUMNS: Mapping[str, Column[Row]] = {column.name: column for column in _ALL}

#: Some are shown only when some job has one, unless the operator asked for them; the node when
#: there are two.
JOB_COLUMNS = Columns(
    COLUMNS,
    last="prompt",
    least_of_the_last=24,
    seldom_used=("group", "node", "progress", "tokens", "cost", "memory"),
    grows="event",
)


def sort_key(row: Row, name: str) -> Any:
    """What a column sorts by; urgency counts the newest first among equals."""
    return COLUMNS[name].key(row)
