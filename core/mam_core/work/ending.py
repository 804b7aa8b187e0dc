"""Ending processes: TERM to all, grace, KILL until none is left. One way for every ending.

It is driven from outside, step by step, so that a supervisor goes on reading
its worker meanwhile.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # see processes.py

from mam_core.work.processes import Process

_TERM, _CONT, _KILL = _signal.SIGTERM, _signal.SIGCONT, _signal.SIGKILL

_SHORT_SEC = 0.01
_LONG_SEC = 0.2


class Ending:
    """One ending, and how many needed which signal."""

    def __init__(self, now: float, grace: float) -> None:
        self._deadline = now + grace
        self._pause = _SHORT_SEC
        self.told: set[tuple[int, str]] = set()  #: got TERM
        self.killed: set[tuple[int, str]] = set()  #: needed KILL

    def hurry(self, now: float, grace: float) -> None:
        """The grace is shorter than was thought; never longer."""
        self._deadline = min(self._deadline, now + grace)
        self._pause = _SHORT_SEC

    def is_over(self, now: float) -> bool:
        """Grace is over."""
        return now >= self._deadline

    def step(self, members: list[Process], now: float) -> float:
        """Signal those who are there; how long to wait before the next look.

        Whoever appears meanwhile gets its signal at the next step: a tree that
        forks on is emptied because the dead do not fork.
        """
        if self.is_over(now):
            for process in members:
                if process.send(_KILL) and process.name not in self.killed:
                    self.killed.add(process.name)
                    self._pause = _SHORT_SEC
        else:
            for process in members:
                if process.name not in self.told and process.send(_TERM):
                    self.told.add(process.name)
                    process.send(_CONT)  # a stopped process hears nothing
        pause = self._pause
        self._pause = min(pause * 2, _LONG_SEC)
        if self.is_over(now):
            return pause
        return max(min(pause, self._deadline - now), 0.0)
