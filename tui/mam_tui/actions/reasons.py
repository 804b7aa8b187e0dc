"""Why an action of the board cannot be done now, in a few words; None when it can."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from mam_core.records import Status
from mam_tui.desk import Desk

#: Marked jobs that are looked at to see whether an action can be done.
_LOOKED_AT = 500
READING = "still reading the registry: no job is shown yet"


def needs_a_job(desk: Desk) -> str | None:
    """Nothing is done to a job that nobody has seen: a key that came before it is not kept."""
    has_one = desk.board.marks or desk.board.cursor is not None
    return None if has_one else _no_job(desk)


def needs(statuses: set[Status], sentence: str) -> Callable[[Desk], str | None]:
    """Asked at every change; of very many marked ones the act itself tells which it left."""

    def why_not(desk: Desk) -> str | None:
        if (lacking := needs_a_job(desk)) is not None:
            return lacking
        board = desk.board
        chosen = board.marks or {board.cursor or ""}
        for job_id in islice(chosen, _LOOKED_AT):
            row = board.rows.get(job_id)
            if row is not None and row.summary and row.summary.status in statuses:
                return None
        return sentence if len(chosen) <= _LOOKED_AT else None

    return why_not


def needs_an_agent(desk: Desk) -> str | None:
    """Of the board's job under the cursor; the view of sessions has reasons of its own."""
    row = desk.board.row
    if row is None:
        return _no_job(desk)
    return None if row.is_running else "only a running job has an agent that listens"


def needs_an_empty_board(desk: Desk) -> str | None:
    if desk.board.rows:
        return "there are jobs here already; `mam demo` opens one"
    return None if desk.board.is_loaded else READING


def _no_job(desk: Desk) -> str:
    return "there is no job here" if desk.board.is_loaded else READING


def needs_a_deed(desk: Desk) -> str | None:
    return None if desk.trail.last else "nothing was done here yet"
