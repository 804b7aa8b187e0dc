"""What happens to a registry besides the death of those who use it.

The wall clock leaps an hour to and fro, and a line of a history is torn, as a full disk or a
power cut leaves it. Players ask the clock of their ground, so that nobody else's moves.
"""

from __future__ import annotations

import os
import random
from contextlib import suppress

from mam_core.clock import SystemClock
from tests.faults.ground import Ground

#: Half of a line, without an end; the checker knows it by sight.
TORN = b'{"n": 7, "event": "status_cha'
_LEAPS_SEC = (-3600, 3600, -5, 0, 7200)


class GroundClock(SystemClock):
    """The machine's clock, as far off as the ground says."""

    def __init__(self, ground: Ground) -> None:
        super().__init__()
        self._place = ground.clock

    def now(self) -> float:
        try:
            return super().now() + float(self._place.read_text())
        except (FileNotFoundError, ValueError):  # nobody moved it, or does so this moment
            return super().now()


def leap(ground: Ground, dice: random.Random) -> bool:
    """All players' clocks at once, as of one machine."""
    ground.clock.write_text(str(dice.choice(_LEAPS_SEC)))
    return True


def tear(ground: Ground, dice: random.Random) -> bool:
    """Under the lock, like the writer that it stands for: nobody else is writing there."""
    if not ground.is_folder or not ground.registry_dir.exists():
        return False
    store = ground.open_plainly()
    try:
        with store.transaction():
            found = sorted(ground.logs_dir.glob("*/events.ndjson"))
            if not found:
                return False
            place = dice.choice(found)
            with place.open("r+b") as file:
                file.seek(-1, os.SEEK_END)
                if file.read() != b"\n":
                    return False
                file.write(TORN)
    finally:
        with suppress(OSError):
            store.close()
    return True
