"""What can be done to whatever needs a person."""

from __future__ import annotations

from mam_tui.actions.kinds import Action, Place

ATTENTION: tuple[Action, ...] = (
    Action("attend", "enter", "answer, or open", Place.ATTENTION, weight=90),
    Action("look", "o", "open the job", Place.ATTENTION, weight=52),
    Action("aside", "x", "put aside", Place.ATTENTION, weight=58),
)
