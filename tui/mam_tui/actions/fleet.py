"""What can be done where the screens of many agents are seen."""

from __future__ import annotations

from mam_tui.actions.kinds import Action, Place

FLEET: tuple[Action, ...] = (
    Action("broadcast", "b", "say to the marked", Place.FLEET, changes=True, weight=86),
    Action("which-screens", "f", "which", Place.FLEET, weight=66),
    Action("more-screens", "plus", "more", Place.FLEET, weight=65),
    Action("fewer-screens", "underscore", "fewer", Place.FLEET, weight=31),
)
