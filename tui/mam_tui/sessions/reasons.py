"""Why something cannot be done to the session under the cursor; asked before a key does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mam_core.operations.sessions import SessionState
from mam_tui.actions import Action, refusal
from mam_tui.desk import Desk
from mam_tui.sessions.rows import SessionRow


def why_not(action: Action, desk: Desk) -> str | None:
    """One sentence; None when it can be done."""
    if (reason := refusal(action, desk)) is not None:
        return reason
    if action.name == "restore":
        return None if _has_missed(desk) else "there is none to bring back"
    if action.name == "export":
        return None if desk.sessions.rows else "there is no session here"
    if action.name not in _OF_A_SESSION:
        return action.why_not(desk)
    row = desk.sessions.row
    return "there is no session here" if row is None else _OF_A_SESSION[action.name](row)


def _has_missed(desk: Desk) -> bool:
    missed = (SessionState.GONE, SessionState.DEAD, SessionState.STOPPING)
    return any(row.seen.state in missed and not row.is_live for row in desk.sessions.rows)


def no_screen(row: SessionRow) -> str | None:
    """Why nothing of it can be seen."""
    if row.pane_id:
        return None
    hint = "; r brings it back" if row.seen.state is SessionState.GONE else ""
    return f"it is {row.word}: tmux shows nothing of it{hint}"


def _no_job(row: SessionRow) -> str | None:
    return None if row.job_id else "it has no job just now, and nobody would hear it"


def _no_question(row: SessionRow) -> str | None:
    return _no_job(row) or (None if row.word == "waiting" else "it asks nothing just now")


def _not_ours(row: SessionRow) -> str | None:
    return None if row.seen.session is not None else f"it is {row.word}: not ours to end"


_OF_A_SESSION: Mapping[str, Callable[[SessionRow], str | None]] = {
    "attach": no_screen,
    "open": lambda row: None if row.job_id else "it has no job just now",
    "say": _no_job,
    "answer": _no_question,
    "stop": _not_ours,
    "stop-now": _not_ours,
}
