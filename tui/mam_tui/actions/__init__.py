"""What the operator can do, as data: key, name, words, and why it cannot be done now.

The key bar, the help, the palette and the ``:`` line are all made from this one
list, so that none of them can forget an action or promise one that is disabled.
Each place has a file of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from mam_tui.actions.attention import ATTENTION
from mam_tui.actions.board import BOARD
from mam_tui.actions.charts import CHARTS
from mam_tui.actions.everywhere import EVERYWHERE
from mam_tui.actions.fleet import FLEET
from mam_tui.actions.gantt import GANTT
from mam_tui.actions.graph import GRAPH
from mam_tui.actions.groups import GROUPS
from mam_tui.actions.history import HISTORY
from mam_tui.actions.kinds import UNBOUND, Action, Place
from mam_tui.actions.nodes import NODES
from mam_tui.actions.past import PAST
from mam_tui.actions.sessions import SESSIONS
from mam_tui.desk import THE_PAST, Desk

__all__ = ["ACTIONS", "UNBOUND", "Action", "Place", "key_of", "refusal", "why_not"]

ACTIONS: Mapping[str, Action] = {
    action.name: action
    for place in (
        *(BOARD, SESSIONS, FLEET, ATTENTION, GANTT, CHARTS, HISTORY, GRAPH, NODES, GROUPS),
        *(EVERYWHERE, PAST),
    )
    for action in place
}


def key_of(action: Action, desk: Desk) -> str:
    """The operator's own where ``mam.toml`` names one; empty: it has none."""
    return desk.keys.get(action.name, action.key)


def why_not(action: Action, desk: Desk) -> str | None:
    """Why an action cannot be done now; None when it can."""
    return refusal(action, desk) or action.why_not(desk)


def refusal(action: Action, desk: Desk) -> str | None:
    """Why the console does nothing of this kind, wherever and to whatever it would be done."""
    if action.changes:
        return desk.refusal
    return THE_PAST if action.only_now and desk.past is not None else None
