"""A death that tmux has overlooked is brought to its notice.

tmux 3.3 can miss the signal of a child that dies in the moment of its start: the pane is dead,
but has no exit code, and no hook runs (6 of 150 on a busy machine). It finds the child when the
next one dies. So a child is given to it that does nothing and dies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from mam_core.tmux.facts import PaneFact

#: In front of another command; it waits for the child, so what is asked next is up to date.
NUDGE = ("run-shell", "true", ";")

#: Each pause is twice the one before, because a process may also have let go of its terminal and
#: go on without it, and because tmux 3.2 never tells a signal: there a code may stay unknown.
_FIRST_PAUSE_SEC = 0.1
_TRIES = 8


class Overlooked:
    """Which panes a nudge may help: each is worth a few, further and further apart."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._tries: dict[str, tuple[int, float]] = {}  #: how many, and not before when

    def among(self, panes: Iterable[PaneFact]) -> bool:
        """Whether one of them died without a code and it is time to try again."""
        now = self._now()
        is_time = False
        for pane in panes:
            if not pane.dead or pane.exit_code is not None or pane.exit_signal is not None:
                continue
            tries, not_before = self._tries.get(pane.pane_id, (0, now))
            if tries < _TRIES and now >= not_before:
                self._tries[pane.pane_id] = (tries + 1, now + _FIRST_PAUSE_SEC * 2**tries)
                is_time = True
        return is_time
