"""Why something cannot be done to the host under the cursor; asked before a key does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mam_core.operations.nodes import Node
from mam_tui.actions import Action, refusal
from mam_tui.desk import Desk

_NONE = "there is no host here"
#: To the agent of one job, and here are hosts.
_OF_A_JOB = ("attach", "say", "answer")


def why_not(action: Action, desk: Desk) -> str | None:
    """One sentence; None when it can be done."""
    if (reason := refusal(action, desk)) is not None:
        return reason
    if action.name == "export":
        return None if desk.nodes.rows else _NONE
    if action.name in _OF_A_JOB:
        return "here are hosts: enter shows the jobs of one"
    if action.name not in _OF_A_NODE:
        return action.why_not(desk)
    node = desk.nodes.row
    return _NONE if node is None else _OF_A_NODE[action.name](node)


def _no_filter(node: Node) -> str | None:
    has_odd_signs = any(sign in node.name for sign in '",') or not node.name.isprintable()
    return "its name cannot be written in a filter" if has_odd_signs else None


_OF_A_NODE: Mapping[str, Callable[[Node], str | None]] = {
    "drain": lambda node: "it is drained already; r takes it back" if node.is_drained else None,
    "undrain": lambda node: None if node.is_drained else "nobody has drained it",
    "open": _no_filter,
}
