"""A person who looks elsewhere is called: by the terminal, and by the operator's own program.

The core decides when, and with which words. Here is only what a console adds: whether
somebody looks, which its terminal tells, and the terminal itself.
"""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from typing import TYPE_CHECKING

from mam_tui.errands import later
from mam_tui.soon import soon

if TYPE_CHECKING:
    from mam_core.operations.notifier import Call, Notifier
    from mam_core.operations.notify_command import NotifyCommand
    from mam_tui.app import Console

#: Between two looks at all needs, however often they change; and ten times as long as a look
#: took: twenty thousand of them are no reason for a key to wait.
_PACE_SEC = 0.25
_SHARE = 10


class Noticing:
    """Of one console, on its own thread. While somebody looks, it costs nothing."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._needing = console.desk.needing
        self._notifier: Notifier | None = None
        self._commands: dict[tuple[str, ...], NotifyCommand] = {}  #: the settings may change
        self._timer: asyncio.TimerHandle | None = None
        self._seen = -1  #: the list that was looked at
        self._next_at = 0.0
        self._is_over = False

    def open(self) -> None:
        """Not before the app runs."""
        self._console.watch(self._console, "app_focus", self._turned, init=False)

    def close(self) -> None:
        """What still runs of the operator's program is ended."""
        self._is_over = True
        self._forget_timer()
        for command in self._commands.values():
            command.close()

    def changed(self) -> None:
        """Something arrived; whether it is another list is seen here."""
        away = not self._console.app_focus and not self._is_over
        if away and self._needing.has_begun and self._needing.version != self._seen:
            self._plan(max(0.0, self._next_at - time.monotonic()))

    def _turned(self, is_focused: bool) -> None:
        """Whoever goes away has seen all that was there until then."""
        if is_focused or self._is_over or not self._needing.has_begun:
            self._forget_timer()
            return
        self._look(is_focused=True)
        self._plan_the_next()

    def _due(self) -> None:
        self._timer = None
        if self._is_over or self._console.app_focus:
            return
        call = self._look(is_focused=False)
        if call is not None:
            self._tell(call)
        self._plan_the_next()

    def _look(self, *, is_focused: bool) -> Call | None:
        now = time.monotonic()
        self._seen = self._needing.version
        call = self._decider().update(iter(self._needing), now, focused=is_focused)
        over = time.monotonic()
        self._next_at = over + max(_PACE_SEC, _SHARE * (over - now))
        return call

    def _decider(self) -> Notifier:
        """Made when somebody first goes away: no picture waits for its modules."""
        if self._notifier is None:
            from mam_core.operations.attention import Urgency
            from mam_core.operations.notifier import Notifier

            settings = self._console.desk.config.notify
            self._notifier = Notifier(settings.debounce_sec, Urgency(settings.min))
        return self._notifier

    def go_by_settings(self) -> None:
        """They have changed."""
        if self._notifier is not None:
            from mam_core.operations.attention import Urgency

            settings = self._console.desk.config.notify
            self._notifier.go_by(settings.debounce_sec, Urgency(settings.min))

    # -- later ---------------------------------------------------------------------------------

    def _plan_the_next(self) -> None:
        due = self._decider().due_at()
        if due is not None:
            self._plan(max(0.0, due - time.monotonic()))

    def _plan(self, pause_sec: float) -> None:
        """The sooner of what is planned already, and this."""
        at = asyncio.get_running_loop().time() + pause_sec
        if self._timer is not None and self._timer.when() <= at:
            return
        self._forget_timer()
        self._timer = soon(self._console, pause_sec, self._due)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- the call ------------------------------------------------------------------------------

    def _tell(self, call: Call) -> None:
        from mam_core.operations.notify_terminal import terminal_words

        settings = self._console.desk.config.notify
        words = terminal_words(
            call.text, bell=settings.bell, form=settings.terminal, environ=os.environ
        )
        driver = self._console._driver
        if words and driver is not None:
            driver.write(words)
        if settings.command:
            self._run(settings.command, call)

    def _run(self, argv: tuple[str, ...], call: Call) -> None:
        if argv not in self._commands:
            from mam_core.operations.notify_command import NotifyCommand

            console = self._console
            warn = partial(console.notify, severity="warning", markup=False)
            self._commands[argv] = NotifyCommand(
                argv, lambda problem: later(console, warn, problem)
            )
        self._commands[argv].run(call)
