"""What can be done to hosts."""

from __future__ import annotations

from mam_tui.actions.kinds import Action, Place

NODES: tuple[Action, ...] = (
    Action("drain", "x", "drain", Place.NODES, changes=True, weight=58),
    Action("undrain", "r", "back to work", Place.NODES, changes=True, weight=61),
)
