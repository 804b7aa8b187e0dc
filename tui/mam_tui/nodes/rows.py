"""The hosts as data: each is its own row, in an order."""

from __future__ import annotations

from mam_core.operations.nodes import Node, NodeState
from mam_tui.faces import Face
from mam_tui.short_list import ShortList

#: None of them is idle: a host of which nothing is heard may be at work all the same.
NODE_FACES = {
    NodeState.STALE: Face("stale", "✗", "X", "error", 0),
    NodeState.SILENT: Face("silent", "◌", "~", "warning", 1),
    NodeState.DRAINING: Face("draining", "◍", "c", "blocked", 2),
    NodeState.UP: Face("up", "●", "*", "working", 3),
}


class NodeList(ShortList[Node]):
    """The hosts in their order."""

    @property
    def used(self) -> frozenset[str]:
        return frozenset({"why"}) if any(row.is_drained for row in self.rows) else frozenset()
