"""What can be done to the charts."""

from __future__ import annotations

from mam_tui.actions.kinds import Action, Place

CHARTS: tuple[Action, ...] = (
    Action("period", "z", "hour, day, week", Place.CHARTS, weight=84),
    Action("charts-by", "b", "by agent, group, session", Place.CHARTS, weight=83),
)
