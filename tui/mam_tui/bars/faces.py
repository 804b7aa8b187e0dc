"""How the ends of attempts look; the words and signs are those of the board's states."""

from __future__ import annotations

from collections.abc import Mapping

from mam_core.operations.bars import Outcome
from mam_tui.faces import FACES, Face

#: Of two that share one place on the screen, the one with the lower rank is shown.
OUTCOMES: Mapping[Outcome, Face] = {
    Outcome.ERROR: FACES["error"]._replace(rank=0),
    Outcome.RUNNING: FACES["running"]._replace(rank=1),
    Outcome.UNKNOWN: Face("unknown", "¿", "?", "warning", 2),
    Outcome.GIVEN_BACK: Face("given back", "↩", "<", "blocked", 3),
    Outcome.CANCELLED: FACES["cancelled"]._replace(rank=4),
    Outcome.COMPLETED: FACES["completed"]._replace(rank=5),
}
