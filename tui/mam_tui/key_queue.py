"""Keys that come faster than the screen follows, each handed over when the one before is done.

Textual puts all keys of one read into the queue of what has the focus when they arrive: when the
first of them opens another view, the others have long gone to the old one. Here a key waits until
the one before it has been acted on, and the screen that it opened has its focus.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

from textual import events
from textual.app import App
from textual.message_pump import MessagePump

from mam_tui.soon import soon

Typed: TypeAlias = events.Key | events.Paste

#: Never kept waiting; what was typed before them is forgotten.
_WAY_OUT = ("ctrl+q", "ctrl+c")
#: A view that opens needs 4 or 5; one that is told something without end would need more.
_MOST_LAPS = 6
#: Then the next key is handed over whatever became of the one before: nothing blocks for good.
#: Only where the key opens something that is still being prepared, what was typed for it is
#: dropped: the view below would take it for commands.
_PATIENCE_SEC = 2.0
_LATE = "slow to open: keys are ignored until it has opened; esc: back to the view"


class KeyQueue:
    """Whether a key is done is found by laps.

    A lap is a callback that goes through the queues of the focused widget, its parent and so on
    up to the app, as the key itself does. Queues keep their order, so that it comes to the app
    behind the key. The key is done when a second lap, or a later one, met nothing on its way.
    """

    def __init__(
        self,
        app: App[Any],
        hand_over: Callable[[Typed], Awaitable[None]],
        warn: Callable[[str], object],
    ) -> None:
        self._app = app
        self._hand_over = hand_over
        self._warn = warn
        self._waiting: deque[Typed] = deque()
        self._turn = 0  #: of the key that is under way
        self._watchdog: asyncio.TimerHandle | None = None  #: None: no key is under way
        self._holds = 0  #: threads that prepare what the key opens
        self._is_held = False  #: the key is done but for them
        self._is_late = False  #: and they have taken too long
        self._is_closed = False

    @property
    def is_free(self) -> bool:
        """No key is waiting or under way."""
        return self._watchdog is None

    def close(self) -> None:
        """The app is being left: no key means anything any more."""
        self._is_closed = True
        self._waiting.clear()

    async def put(self, event: Typed) -> None:
        if self._is_closed:
            return
        if isinstance(event, events.Key) and event.key in _WAY_OUT:
            self._waiting.clear()
            await self._hand_over(event)
        elif self.is_free:
            await self._begin(event)
        elif self._is_late:
            if isinstance(event, events.Key) and event.key == "escape":
                await self._end(self._turn)
        else:
            self._waiting.append(event)

    def hold(self) -> Callable[[], None]:
        """The key that is under way opens something when a thread has prepared it; call the answer
        when it is open, or will not be."""
        self._holds += 1
        return partial(self._release, self._turn)

    def _release(self, turn: int) -> None:
        if turn != self._turn or not self._holds:
            return
        self._holds -= 1
        if not self._holds and self._is_held:
            self._is_held = self._is_late = False
            self._start_lap(turn, 1)

    async def _begin(self, event: Typed) -> None:
        self._turn += 1
        self._holds, self._is_held = 0, False
        self._watchdog = soon(self._app, _PATIENCE_SEC, partial(self._run_out, self._turn))
        await self._hand_over(event)
        self._start_lap(self._turn, 1)

    async def _run_out(self, turn: int) -> None:
        """Of patience."""
        if turn != self._turn or not self._holds:
            await self._end(turn)
            return
        self._is_late = True
        self._waiting.clear()
        self._warn(_LATE)

    async def _end(self, turn: int) -> None:
        """The next key, if this one was not ended before."""
        if turn != self._turn or self._watchdog is None:
            return
        self._watchdog.cancel()
        self._watchdog = None
        self._holds, self._is_late = 0, False
        if self._waiting:
            await self._begin(self._waiting.popleft())

    def _start_lap(self, turn: int, lap: int) -> None:
        if not self._app.is_running or not self._app.screen_stack:
            return
        start = self._app.focused or self._app.screen
        self._pass_on(turn, lap, list(start.ancestors_with_self), True)

    def _pass_on(self, turn: int, lap: int, way: list[MessagePump], was_empty: bool) -> None:
        """To the next queue that still takes something; the app's is the last."""
        for at, pump in enumerate(way, 1):
            if pump.call_later(self._arrive, turn, lap, pump, way[at:], was_empty):
                return

    async def _arrive(
        self, turn: int, lap: int, pump: MessagePump, way: list[MessagePump], was_empty: bool
    ) -> None:
        was_empty = was_empty and not pump.message_queue_size
        if turn != self._turn:
            return
        if way:
            self._pass_on(turn, lap, way, was_empty)
        elif lap < _MOST_LAPS and not (was_empty and lap > 1):
            self._start_lap(turn, lap + 1)
        elif self._holds:
            self._is_held = True
        else:
            await self._end(turn)
