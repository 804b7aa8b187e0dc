"""What it costs to open a view on very much, over opening it on little.

The real console, without a terminal: 10,000 jobs and the logs of 10,000 more, a million lines,
against a hundred jobs. Opening is from the key's act to the first frame of the view; what is
read after that is read on a thread, and the view says so. The logs are those of `bench.past`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping

from bench.console_keys import keys
from bench.figures import Figure, Measure, Wrong
from bench.ground import Ground, bare_jobs
from bench.past import LINES_A_JOB, past_of
from bench.travel import moving
from mam_core.config import load
from mam_tui.app import Console
from mam_tui.bridge import Bridge
from mam_tui.desk import Desk
from mam_tui.views import BOARD, VIEWS

_TIMES_AS_MANY = 100
_MORE_SEC = 0.3
_PATIENCE_SEC = 120.0


def opening(ground: Ground) -> list[Figure]:
    """One figure for each view: the time over that with few, as a share of 300 ms."""
    many, few = past_of(ground), ground.path("few")
    os.makedirs(few, mode=0o700)
    bare_jobs(many, ground.effort.pending)
    bare_jobs(few, ground.effort.pending // _TIMES_AS_MANY)
    more: dict[str, list[float]] = {}
    for _ in range(ground.effort.bulk_rounds):
        small, large = asyncio.run(_opened(few)), asyncio.run(_opened(many))
        for name, took in large.items():
            more.setdefault(name, []).append(max(0.0, took - small[name]))
    return [_figure(ground, name, samples) for name, samples in more.items()]


def _figure(ground: Ground, name: str, samples: list[float]) -> Figure:
    many, few = ground.effort.pending, ground.effort.pending // _TIMES_AS_MANY
    lines = ground.effort.logs * LINES_A_JOB
    what = f"open {name} on {many:,} jobs and {lines:,} lines, over {few} jobs"
    goal = [_MORE_SEC] * len(samples)
    return Figure(name, what, "300 ms", Measure.COST, samples, goal, goal=1.0)


FIGURES: Mapping[str, Callable[[Ground], list[Figure]]] = {
    "opening": opening,
    "travel": moving,
    "keys": keys,
}


async def _opened(path: str) -> dict[str, float]:
    """Every view once, in a console of its own: one that was left is kept, and opens sooner."""
    desk = Desk(path, load())

    def bridge(ring: Callable[[], None]) -> Bridge:
        return Bridge(path, desk.config, ring, with_duties=False, panes=desk.panes)

    app = Console(desk, bridge=bridge)
    took = {}
    async with app.run_test(size=(160, 48)) as pilot:
        deadline = time.monotonic() + _PATIENCE_SEC
        while app.standing().loading:
            if time.monotonic() > deadline:
                raise Wrong("the jobs were never loaded")
            await pilot.pause(0.02)
        await pilot.pause(1.0)
        for name in VIEWS:
            if name == BOARD:
                continue
            drawn = asyncio.Event()
            began = time.perf_counter()
            app.views.go(name)
            app.screen.call_after_refresh(drawn.set)
            await drawn.wait()
            took[name] = time.perf_counter() - began
            app.views.go(BOARD)
            await pilot.pause(0.3)
    return took
