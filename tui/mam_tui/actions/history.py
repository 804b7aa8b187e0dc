"""What can be done in the history."""

from __future__ import annotations

from mam_tui.actions.kinds import Action, Place

HISTORY: tuple[Action, ...] = (
    Action("compare", "equals_sign", "compare", Place.HISTORY, weight=75),
    Action("acts", "o", "jobs or acts", Place.HISTORY, weight=72),
)
