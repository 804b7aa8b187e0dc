"""How long a key waits on every view while a thousand events a second come in.

The real console with a real broker, without a terminal: a thread hands keys over as Textual's
driver does, and a key is answered when a frame has been made that shows what it did. The goal is
held against the time by the wall, which on a shared machine is also waiting for a core: beside it
stands the same with no events, and the processor time of the console's own thread.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from textual import events

from bench.console_ground import Source, source
from bench.effort import Effort
from bench.feed import replace
from bench.figures import Figure, Measure, Wrong
from bench.ground import Ground, bare_jobs
from mam_core.clock import stamp
from mam_core.config import load
from mam_core.records import Reason, Status
from mam_core.wiring import embedded_broker, open_registry
from mam_tui import garbage
from mam_tui.app import Console
from mam_tui.bridge import Bridge
from mam_tui.desk import Desk
from mam_tui.views import BOARD

_HEARD_OF = 200
_FAILED = 60
_RATE = 1_000
_KEYS = 60
_APART_SEC = 0.08
_GOAL_SEC = 0.1
_PATIENCE_SEC = 60.0


class _Way(NamedTuple):
    """How a view is tried: two keys that undo each other, and what they change."""

    there: str
    back: str
    sign: Callable[[Console], object]


def _screen(app: Console) -> object:
    return app.screen


def _of(view: str) -> Callable[[Console], object]:
    """Where the cursor of a view's table stands."""

    def sign(app: Console) -> object:
        shown: Any = app.views.current
        if view == "gantt":
            return shown.chart.cursor
        return shown.table.cursor_line

    return sign


#: Where there is nothing to go about in, the list of keys is opened and left.
WAYS: Mapping[str, _Way] = {
    BOARD: _Way("pagedown", "pageup", lambda app: app.desk.board.cursor),
    "sessions": _Way("question_mark", "escape", _screen),
    "attention": _Way("pagedown", "pageup", _of("attention")),
    "fleet": _Way("question_mark", "escape", _screen),
    "gantt": _Way("pagedown", "pageup", _of("gantt")),
    "charts": _Way("question_mark", "escape", _screen),
    "history": _Way("question_mark", "escape", _screen),
    "graph": _Way("question_mark", "escape", _screen),
}


class Probe:
    """Sees every frame of a console, and tells when one has what was waited for."""

    def __init__(self, app: Console) -> None:
        self._app = app
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._sign: Callable[[Console], object] | None = None
        self._before: object = None
        self._answered = threading.Event()
        self._at = 0.0
        display = app._display

        def seen(*args: Any, **more: Any) -> None:
            display(*args, **more)
            if self._sign is not None and self._sign(app) != self._before:
                self._at, self._sign = time.monotonic(), None
                self._answered.set()

        app._display = seen  # type: ignore[method-assign]

    def press(self, key: str, sign: Callable[[Console], object]) -> float:
        """From another thread, as a driver's: how long it took to the frame."""
        self._before = sign(self._app)
        self._answered.clear()
        self._sign = sign
        pressed = time.monotonic()
        message = events.Key(key, "?" if key == "question_mark" else None)
        asyncio.run_coroutine_threadsafe(self._app._post_message(message), self._loop)
        if not self._answered.wait(_PATIENCE_SEC):
            raise Wrong(f"{key} was never answered")
        return self._at - pressed


def keys(ground: Ground) -> list[Figure]:
    path = ground.path("keys")
    os.makedirs(path, mode=0o700)
    bare_jobs(path, ground.effort.pending)
    some = _busy(path)
    garbage.hold()  # as the console does when it is opened
    try:
        with embedded_broker(path).ensure_running(), source(path) as news:
            took = asyncio.run(_tried(path, news, some, ground.effort))
    finally:
        garbage.let_go()
    figures = []
    for view, (still, busy) in took.items():
        words = f"{_shown(busy)}; with no events {_shown(still)}"
        print(f"        {view}: {words}", file=sys.stderr, flush=True)
        for what, value in (("median", statistics.median(busy)), ("95th percentile", _p95(busy))):
            name = f"{view}: a key answered at {ground.effort.some(_RATE):,} events/s, {what}"
            figures.append(Figure("keys", name, "100 ms", Measure.COST, [value], [_GOAL_SEC], 1))
    return figures


def _shown(waits: list[float]) -> str:
    middle, late, last = statistics.median(waits), _p95(waits), max(waits)
    middle, late, last = (1000 * value for value in (middle, late, last))
    return f"{middle:.0f} ms, 95 of 100 within {late:.0f}, all within {last:.0f}"


def _p95(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=20)[-1]


def _busy(path: str) -> list[str]:
    """Some jobs run, and some have failed; the answer is those of which something is heard."""
    now = time.time()
    names = [f"far{number:08d}" for number in range(_HEARD_OF + _FAILED)]
    with open_registry(path) as registry:
        for number, name in enumerate(names):
            ran = {"attempt": 1, "started_at": stamp(now - 60 - number), "node": "host"}
            if number < _HEARD_OF:
                change: dict[str, Any] = {"status": Status.RUNNING}
            else:
                ended = {"ended_at": stamp(now), "reason": Reason.EXIT, "failures": 1}
                change = {"status": Status.ERROR, **ended}
            replace(path, registry.get(name).evolve(**ran, **change))
    return names[:_HEARD_OF]


async def _tried(
    path: str, news: Source, some: list[str], effort: Effort
) -> dict[str, tuple[list[float], list[float]]]:
    desk, count, rate = Desk(path, load()), effort.some(_KEYS), effort.some(_RATE)

    def bridge(ring: Callable[[], None]) -> Bridge:
        return Bridge(path, desk.config, ring, with_duties=False, panes=desk.panes)

    app = Console(desk, bridge=bridge)
    found: dict[str, tuple[list[float], list[float]]] = {}
    async with app.run_test(size=(160, 48)) as pilot:
        probe = Probe(app)
        while app.standing().loading:
            await pilot.pause(0.05)
        for view, way in WAYS.items():
            app.views.go(view)
            await pilot.pause(2.0)
            still = await asyncio.to_thread(_press, probe, way, count)
            news.begin("events", some, int(rate * (count * _APART_SEC * 1.5 + 1)), rate)
            await pilot.pause(0.5)
            busy = await asyncio.to_thread(_press, probe, way, count)
            await asyncio.to_thread(news.end)
            found[view] = still, busy
    return found


def _press(probe: Probe, way: _Way, count: int) -> list[float]:
    waits = []
    for number in range(count):
        waits.append(probe.press(way.back if number % 2 else way.there, way.sign))
        time.sleep(_APART_SEC)
    return waits
