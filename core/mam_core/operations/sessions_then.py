"""A session of the past as lists of sessions show one: what its jobs say, and nothing of tmux."""

from __future__ import annotations

from mam_core.operations.replay import SessionThen
from mam_core.operations.sessions import Seen, SessionState
from mam_core.sessions import LABEL_PREFIX, Session

_NOT_KEPT = "what tmux showed then is in no log"


def seen_then(then: SessionThen) -> Seen:
    """Alive while something ran in it; otherwise nobody knows."""
    name = then.label.removeprefix(LABEL_PREFIX)
    agents, nodes = ", ".join(then.agents), ", ".join(then.nodes)
    return Seen(
        name,
        SessionState.ALIVE if then.running else SessionState.UNKNOWN,
        Session(name, then.label, agents, "", "", "", "", "", nodes),
        jobs=then.running,
        queued=then.queued,
        note="" if then.running else _NOT_KEPT,
    )
