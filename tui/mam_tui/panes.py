"""The agents' screens, live: five looks a second at those that somebody watches, and no other.

Those that are only in sight are looked at once a second. All of a look come over the desk's
one client of tmux, in one round trip; a picture is handed on only when it is another than
the one before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mam_core.errors import JobNotFound, MamError
from mam_core.operations.panes import Panes, screen_of
from mam_core.records import Status
from mam_tui.rounds import Rounds
from mam_tui.widgets.detail.pane import PaneSource, Sight

if TYPE_CHECKING:
    from mam_core.registry import Registry
    from mam_tui.desk import Desk

PACE_SEC = 0.2
#: Every so many looks those that are only in sight are looked at, too.
_SLOWER = 5

_GONE = Sight((), "its screen is gone")


class PaneWatch:
    """Told which panes are watched; `deliver` is called on a thread, with those that changed."""

    def __init__(
        self,
        panes: Panes,
        deliver: Callable[[Mapping[str, Sight]], object],
        pace_sec: float = PACE_SEC,
    ) -> None:
        self._panes = panes
        self._deliver = deliver
        self._lock = threading.Lock()
        self._watched: tuple[str, ...] = ()
        self._in_sight: tuple[str, ...] = ()
        self._told: dict[str, Sight] = {}
        self._turn = 0
        self.rounds = Rounds("mam-panes", self._look, pace_sec)

    def look_at(self, pane_ids: Sequence[str], in_sight: Sequence[str] = ()) -> None:
        """These from now on, and those in sight more slowly; what is new, at once.

        None at all: nothing is asked.
        """
        wanted = tuple(pane_ids), tuple(in_sight)
        with self._lock:
            if wanted == (self._watched, self._in_sight):
                return
            self._watched, self._in_sight = wanted
            seen = {*pane_ids, *in_sight}
            self._told = {one: sight for one, sight in self._told.items() if one in seen}
        if seen:
            self.rounds.watch()
        else:
            self.rounds.rest()

    def close(self) -> None:
        self.rounds.close()

    def _look(self) -> None:
        with self._lock:
            is_turn, self._turn = self._turn == 0, (self._turn + 1) % _SLOWER
            slow = (one for one in self._in_sight if is_turn or one not in self._told)
            due = [*dict.fromkeys((*self._watched, *slow))]
        try:
            captures = self._panes.captures(due)
        except Exception as problem:  # never silent, and never the end of looking
            why = problem.message if isinstance(problem, MamError) else str(problem)
            found = dict.fromkeys(due, Sight((), why))
        else:
            found = {
                one: Sight(without_empty_end(captures[one].lines)) if one in captures else _GONE
                for one in due
            }
        with self._lock:
            wanted = {*self._watched, *self._in_sight}  # perhaps others than a moment ago
            news = {
                one: sight
                for one, sight in found.items()
                if one in wanted and self._told.get(one) != sight
            }
            self._told |= news
        if news:
            self._deliver(news)


def without_empty_end(lines: Sequence[str]) -> tuple[str, ...]:
    """A screen without the lines that nothing was written on yet."""
    last = len(lines)
    while last and not lines[last - 1].strip():
        last -= 1
    return tuple(lines[:last])


def source(desk: Desk) -> PaneSource:
    """For the detail panel, which asks for the screen of a job whenever it wants to see it."""
    return partial(_sight, desk)


def _sight(desk: Desk, registry: Registry, job_id: str) -> Sight:
    from mam_core.operations.elsewhere import NoAnswer, is_elsewhere  # not before the first frame

    panes = desk.panes
    try:
        job = registry.get(job_id)
        if job.status is Status.RUNNING and is_elsewhere(registry, job):
            lines = desk.others.screen(registry, job, colours=True)
            return Sight(without_empty_end(lines), f"on {job.node}", is_far=True)
        pane = screen_of(registry, job_id, panes)
        capture = panes.captures([pane.pane_id]).get(pane.pane_id)
    except JobNotFound:
        return Sight((), "its record is gone: no screen shows it any more")
    except NoAnswer as problem:
        return Sight((), problem.message, is_far=True)
    except MamError as problem:
        return Sight((), problem.message)
    if capture is None:
        return _GONE
    return Sight(without_empty_end(capture.lines), f"session {pane.session}")
