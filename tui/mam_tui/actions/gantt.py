"""What can be done to the picture of attempts over time."""

from __future__ import annotations

from mam_tui.actions.kinds import Action, Place

GANTT: tuple[Action, ...] = (
    Action("lanes", "b", "lanes by the next", Place.GANTT, weight=84),
    Action("zoom-in", "plus", "nearer", Place.GANTT, weight=82),
    Action("zoom-out", "underscore", "farther", Place.GANTT, weight=81),
    Action("follow-now", "f", "follow now", Place.GANTT, weight=83),
)
