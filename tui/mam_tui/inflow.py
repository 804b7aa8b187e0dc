"""What the bridge brings reaches the screen at the console's own pace.

The bridge rings from its threads, as often as it likes; here that becomes at most
twenty drains a second. While the operator holds the picture everything waits at
the bridge, which keeps it small; only what is said about the way here is taken.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context

from textual.app import App

from mam_tui.bridge import Bridge
from mam_tui.folding import Folded
from mam_tui.soon import soon

#: Between two drains of what has arrived.
_DRAIN_SEC = 1 / 20


class Inflow:
    """Of one console: `show` gets what arrived, on the console's own thread."""

    def __init__(self, app: App[None], show: Callable[[Folded], None]) -> None:
        self._app = app
        self._show = show
        self._is_held = False
        self._is_away = False
        self._drain: asyncio.TimerHandle | None = None
        self._next_at = 0.0

    def open(self, bridge: Bridge) -> None:
        """On the console's own thread, before anything rings."""
        self._bridge = bridge
        self._loop = asyncio.get_running_loop()
        self._home = copy_context()

    def ring(self) -> None:
        """From the bridge's threads, which must not wait for us."""
        with suppress(RuntimeError):  # the loop has just closed
            # In our own context: Textual finds the app by it.
            self._loop.call_soon_threadsafe(self._plan, context=self._home)

    @property
    def held(self) -> int | None:
        """How many records and events are held back; None: the picture is live."""
        return self._bridge.waiting if self._is_held else None

    def toggle(self) -> None:
        """Hold the picture, or let everything come that was held back."""
        self._is_held = not self._is_held
        if not self._is_held:
            self._show(self._bridge.take())

    def wait(self) -> None:
        """The operator looks at something else: everything waits, and is not said to be held."""
        self._is_away = True

    def go_on(self) -> None:
        """The operator is back; what a held picture holds back stays so."""
        self._is_away = False
        if not self._is_held:
            self._show(self._bridge.take())

    def _plan(self) -> None:
        if self._drain is None:
            # At once after a quiet time: only what comes in a stream has to wait.
            pause = max(0.0, self._next_at - time.monotonic())
            self._drain = soon(self._app, pause, self._drained)

    def _drained(self) -> None:
        self._drain = None
        self._next_at = time.monotonic() + _DRAIN_SEC
        if self._app.is_running:  # else we are being left, and the screens are going one by one
            self._show(self._bridge.take(only_notices=self._is_held or self._is_away))
