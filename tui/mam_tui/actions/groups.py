"""What can be done to groups."""

from __future__ import annotations

from mam_tui.actions.kinds import Action, Place

GROUPS: tuple[Action, ...] = (
    Action("more-slots", "plus", "one slot more", Place.GROUPS, changes=True, weight=88),
    Action("fewer-slots", "underscore", "one slot fewer", Place.GROUPS, changes=True, weight=87),
    Action("usual-slots", "equals_sign", "as mam.toml says", Place.GROUPS, changes=True, weight=50),
    Action("jobs-of-group", "o", "its jobs", Place.GROUPS, weight=70),
)
