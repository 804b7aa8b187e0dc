"""What a move in the past costs in the console: from the key's act to the frame that shows it.

The real console, without a terminal, on the logs of `bench.past` with 10,000 records beside them.
Processor time of the console's own thread is what is held against the goal, since the machine is
shared; how long it took by the wall is told beside it.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from textual.pilot import Pilot

from bench.figures import Figure, Measure, Wrong
from bench.ground import Ground, bare_jobs
from bench.past import past_of
from mam_core.config import load
from mam_tui import garbage
from mam_tui.app import Console
from mam_tui.bridge import Bridge
from mam_tui.desk import Desk
from mam_tui.views import BOARD

_MOVES = 40
_GOAL_SEC = 0.1
_PATIENCE_SEC = 300.0
_VIEWS = (BOARD, "sessions", "gantt")
#: By the names of the actions: there, and back again.
_KEYS = {
    "a step": ("later", "earlier"),
    "10 s": ("on-10s", "back-10s"),
    "1 min": ("on-1m", "back-1m"),
    "10 min": ("on-10m", "back-10m"),
}
_JUMP = "anywhere"


class _Took(NamedTuple):
    cpu: float
    wall: float


def moving(ground: Ground) -> list[Figure]:
    """One figure for each view and way of moving: 95 of 100 within the goal."""
    path = past_of(ground)
    bare_jobs(path, ground.effort.pending)
    figures = []
    garbage.hold()  # as the console does when it is opened
    try:
        moved = asyncio.run(_moved(path, ground.effort.some(_MOVES)))
    finally:
        garbage.let_go()
    for (view, how), took in moved.items():
        wall = [one.wall * 1000 for one in took]
        words = f"by the wall {statistics.median(wall):.0f} ms, {max(wall):.0f} ms at most"
        print(f"        {view}, {how}: {words}", file=sys.stderr, flush=True)
        cpu = [one.cpu for one in took]
        middle, late = statistics.median(cpu), statistics.quantiles(cpu, n=20)[-1]
        for what, value in (("median", middle), ("95th percentile", late)):
            name = f"{view}: move {how} in a million lines, processor time, {what}"
            figures.append(
                Figure("travel", name, "100 ms", Measure.COST, [value], [_GOAL_SEC], goal=1.0)
            )
    return figures


async def _moved(path: str, moves: int) -> dict[tuple[str, str], list[_Took]]:
    desk = Desk(path, load())

    def bridge(ring: Callable[[], None]) -> Bridge:
        return Bridge(path, desk.config, ring, with_duties=False, panes=desk.panes)

    app = Console(desk, bridge=bridge)
    found: dict[tuple[str, str], list[_Took]] = {}
    async with app.run_test(size=(160, 48)) as pilot:
        await _until(pilot, lambda: not app.standing().loading)
        app.views.go("gantt")
        await _until(pilot, lambda: desk.bars.is_complete)
        app.views.go(BOARD)
        app.travel.toggle()
        await _until(pilot, lambda: app.travel.traveller is not None)
        for view in _VIEWS:
            app.views.go(view)
            await pilot.pause(1.0)
            for how in (*_KEYS, _JUMP):
                found[view, how] = await _move_about(app, pilot, how, moves)
    return found


async def _move_about(app: Console, pilot: Pilot[None], how: str, moves: int) -> list[_Took]:
    traveller = app.travel.traveller
    if traveller is None:
        raise Wrong("the past was left")
    dice = random.Random(1)
    begin, last = traveller.begin, traveller.last
    app.travel.chose(0.5)
    await pilot.pause(0.5)
    took = []
    for number in range(moves):
        if how == _JUMP:
            act = partial(app.travel.chose, (dice.uniform(begin, last) - begin) / (last - begin))
        else:
            act = partial(app.travel.do, _KEYS[how][number // 5 % 2])
        drawn = asyncio.Event()
        wall, cpu = time.perf_counter(), time.thread_time()
        act()
        app.screen.call_after_refresh(drawn.set)
        await drawn.wait()
        took.append(_Took(time.thread_time() - cpu, time.perf_counter() - wall))
        await pilot.pause(0.03)
    return took


async def _until(pilot: Pilot[None], happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SEC
    while not happened():
        if time.monotonic() > deadline:
            raise Wrong("the console did not get ready")
        await pilot.pause(0.05)
