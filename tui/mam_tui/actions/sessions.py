"""What can be done to sessions."""

from __future__ import annotations

from mam_tui.actions.kinds import Action, Place

SESSIONS: tuple[Action, ...] = (
    Action("stop", "x", "stop", Place.SESSIONS, changes=True, weight=58),
    Action("stop-now", "X", "stop now", Place.SESSIONS, changes=True, weight=32),
    Action("restore", "r", "bring back", Place.SESSIONS, changes=True, weight=61),
)
