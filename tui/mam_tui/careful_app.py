"""What we do otherwise than any Textual app, whatever it shows.

Words in notices are text and bounded; keys wait for the one before them, and those from before a
question are no answers to it; a mistake of ours ends in a sentence; nothing is drawn for a screen
that nobody sees.
"""

from __future__ import annotations

import asyncio
import math
import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import events
from textual.app import App, ScreenStackError
from textual.css.query import NoMatches
from textual.screen import ModalScreen, Screen
from textual.widget import MountError

from mam_core.operations.crash import crashed
from mam_core.safe_text import clip, safe
from mam_tui.key_queue import KeyQueue
from mam_tui.plain import InAscii
from mam_tui.soon import soon

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.notifications import SeverityLevel

    from mam_tui.terminal import TerminalOutput

#: What a screen meets that was only being opened when the app was left: its parts are not made.
_HALF_MADE = (NoMatches, MountError, ScreenStackError)
#: Between two looks whether the terminal is still there.
_TERMINAL_SEC = 1.0
#: Textual's timer has rung by then, if it does at all.
_RESIZE_SEC = 0.1
#: Of one notice; what is longer stands in the log of deeds.
_NOTICE_LINES = 20
_NOTICE_CELLS = 500


class CarefulApp(App[None]):
    """Knows nothing of jobs."""

    def __init__(self, *, ascii_only: bool = False) -> None:
        if "NO_COLOR" in os.environ:
            super().__init__(ansi_color=True)  # the terminal's own are left alone, not made grey
        else:
            super().__init__()
        self.ascii_only = ascii_only
        self.terminal: TerminalOutput | None = None  #: set when we run on one
        self._home: asyncio.AbstractEventLoop | None = None
        self._left_with: int | None = None
        warn = partial(self.notify, severity="warning", markup=False)
        self.key_queue = KeyQueue(self, self._pass_event, warn)
        if ascii_only:
            self._filters.append(InAscii())

    def on_mount(self) -> None:
        self._home = asyncio.get_running_loop()
        # Textual redraws after `suspend`, but not when a stopped process continues.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        if self.terminal is not None:
            self.set_interval(_TERMINAL_SEC, self.terminal.look)
        if self._left_with is not None:
            self._exit_now()

    def leave(self, code: int) -> None:
        """From any thread, and in the middle of a signal; keys that still wait mean nothing."""
        if self._left_with is None:
            self._left_with = code
        self._begin_to_leave()
        if self._home is not None:
            with suppress(RuntimeError):  # it has just been left
                self._home.call_soon_threadsafe(self._exit_now)

    def _exit_now(self) -> None:
        self.exit(return_code=self.exit_code)

    @property
    def exit_code(self) -> int:
        """How it was left."""
        return self._left_with or 0

    def exit(
        self, result: None = None, return_code: int = 0, message: RenderableType | None = None
    ) -> None:
        if self._left_with is None:
            self._left_with = return_code
        self._begin_to_leave()
        super().exit(result, return_code, message)

    def _begin_to_leave(self) -> None:
        self.key_queue.close()
        if self.terminal is not None:
            self.terminal.leave()

    @property
    def _background_screens(self) -> list[Screen[Any]]:
        """Nothing is seen through a view. Textual counts the screen below all the same, and would
        draw the view anew for each line of a board that nobody sees."""
        return super()._background_screens if isinstance(self.screen, ModalScreen) else []

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self.key_queue.put(event)
        else:
            await self._pass_event(event)
        if isinstance(event, events.Resize):
            soon(self, _RESIZE_SEC, partial(self._bring_size, event))

    def _bring_size(self, event: events.Resize) -> None:
        """Textual brings a new size to the screens by a timer, which may never ring (see `soon`);
        there is no public door to what it has not brought."""
        if self._resize_event is event:
            self._resize_event = None
            for screen in (self.screen, *self._background_screens):
                screen.post_message(event)

    async def _pass_event(self, event: events.Event) -> None:
        """Keys that were pressed before a question was asked are no answers to it: on a busy
        machine they come when it stands there, and even from the screen below it."""
        if isinstance(event, events.Key):
            asked_at: float = getattr(self.screen, "asked_at", -math.inf)
            if event.time < asked_at:
                return
        await super().on_event(event)

    def _fatal_error(self) -> None:
        """Textual's own way out shows a traceback with all values, which nobody at a console asked
        for; there is no public door to change that."""
        assert self._exception is not None
        if self._left_with is not None and isinstance(self._exception, _HALF_MADE):
            return
        self._left_with = 1
        self._begin_to_leave()
        self.panic(Text(crashed(self._exception)))

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """The one door for notices: whoever wrote the words, they are text, and not without end."""
        lines = (clip(safe(line), _NOTICE_CELLS) for line in message.split("\n")[:_NOTICE_LINES])
        text = "\n".join(lines)
        if severity == "error":
            self.complain(text)
        else:
            title = safe(title)
            super().notify(text, title=title, severity=severity, timeout=timeout, markup=markup)

    def complain(self, words: str) -> None:
        """What went wrong does not go away by itself."""
        raise NotImplementedError
