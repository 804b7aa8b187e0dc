"""When a console has done what a key or a click asked of it.

Textual's own rule is a guess: a test goes on when the process used less than a millisecond of
processor time in the last twenty, or after a second. A console that looks at files and sockets in
the background is rarely so idle, and one that a busy machine keeps waiting always is. Here a test
goes on when no message waits or is being handled, nothing is left to draw, no short-lived thread
is at work and nothing is due soon.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from textual._context import active_app
from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen

from mam_tui.careful_app import CarefulApp
from mam_tui.history.reading import HistoryReader
from mam_tui.rounds import Rounds
from tests.support.patience import PATIENCE_SEC

#: Short-lived threads of the console: each does one thing, hands it over as a message, and ends.
_SHORT_LIVED = ("mam-errand", "mam-question")

_PAUSE_SEC = 0.001

#: What is due by then is part of what was asked for: what arrives is drained 20 times a second.
#: What is due later is a pause of its own, or the next look, and the test waits for what it shows.
_SOON_SEC = 0.06


async def until_at_rest(min_sleep: float = 0.0, max_sleep: float = PATIENCE_SEC) -> None:
    """In the place of Textual's `wait_for_idle`, with its arguments.

    A console that never comes to rest fails its test, and the failure names what still moves. To go
    on would mean to look at a half-drawn console.
    """
    app = active_app.get()
    begun = time.monotonic()
    calm = 0  # what a thread hands over is in no queue for a moment
    while calm < 2 and time.monotonic() - begun < max_sleep:
        await asyncio.sleep(_PAUSE_SEC)
        calm = calm + 1 if is_at_rest(app) else 0
    assert calm == 2, f"not at rest: {what_moves(app)}"
    if (left := begun + min_sleep - time.monotonic()) > 0:
        await asyncio.sleep(left)


def is_at_rest(app: App[Any]) -> bool:
    return not what_moves(app)


def what_moves(app: App[Any]) -> str:
    """The first thing that is not over yet; nothing where the console is at rest."""
    if isinstance(app, CarefulApp) and not app.key_queue.is_free:
        return "a key is under way"
    for pump in _pumps(app):
        if not _waits_for_a_message(pump):
            return f"{pump!r} has a message, or is in a handler"
    if app._resize_event is not None:
        return "a new size"
    for screen in app._screen_stack[-1:]:
        if _has_to_draw(screen):
            return f"{screen!r} has to draw"
    for thread in threading.enumerate():
        if thread.name in _SHORT_LIVED:
            return f"the thread {thread.name}"
    for worker in app.workers:
        if worker.is_running:
            return f"the worker {worker.name}"
    return "something is due" if _is_something_due() else ""


def is_asleep(watch: Rounds | HistoryReader) -> bool:
    """Nobody watches, and no look is under way."""
    changed: Any = watch._changed
    return not watch._is_watched and bool(changed._waiters)


def _pumps(app: App[Any]) -> list[MessagePump]:
    pumps: list[MessagePump] = [app]
    for screen in app._screen_stack:
        pumps.extend(screen.walk_children(with_self=True))
    return [pump for pump in pumps if pump.is_running]


def _waits_for_a_message(pump: MessagePump) -> bool:
    """Else one is in its queue, or it is in a handler."""
    queue: Any = pump._message_queue
    is_waiting = bool(queue.ready_event._waiters)
    return is_waiting and queue.empty() and not pump._next_callbacks


def _has_to_draw(screen: Screen[Any]) -> bool:
    if not screen.is_running or screen.app._batch_count:
        return False
    return bool(screen._layout_required or screen._dirty_widgets or screen._callbacks)


def _is_something_due() -> bool:
    """By `soon` of the console."""
    loop: Any = asyncio.get_running_loop()
    return any(
        isinstance(getattr(timer._callback, "__self__", None), MessagePump)
        and not timer.cancelled()
        and timer.when() < loop.time() + _SOON_SEC
        for timer in loop._scheduled
    )
