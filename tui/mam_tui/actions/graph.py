"""What can be done where jobs are seen by what they come after."""

from __future__ import annotations

from mam_tui.actions.kinds import Action, Place

GRAPH: tuple[Action, ...] = (
    Action("parent", "left_square_bracket", "to its parent", Place.GRAPH, weight=68),
    Action("child", "right_square_bracket", "to its child", Place.GRAPH, weight=67),
    Action("fold", "z", "fold, or open", Place.GRAPH, weight=66),
    Action("fold-finished", "f", "show finished", Place.GRAPH, weight=65),
    Action("fold-group", "o", "fold its group", Place.GRAPH, weight=57),
    Action("fold-groups", "O", "all groups", Place.GRAPH),
)
