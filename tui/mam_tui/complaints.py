"""What went wrong stays on the screen until the operator puts it away.

A result is told in passing; a failure that vanishes while one looks elsewhere was not told.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from textual.screen import ModalScreen, Screen

from mam_core.safe_text import clip, one_line
from mam_tui.actions import ACTIONS, key_of
from mam_tui.widgets.complaint import Complaint
from mam_tui.widgets.key_bar import KeyBar, key_name

if TYPE_CHECKING:
    from mam_tui.app import Console

_CELLS = 300


class Complaints:
    """Of one console; the newest is seen, with the number of those before it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._words = ""
        self._count = 0

    @property
    def words(self) -> str:
        """Empty: there is nothing to complain of."""
        return self._words

    def say(self, words: str) -> None:
        self._words = clip(one_line("  ".join(words.split("\n"))), _CELLS)
        self._count += 1
        self.settle()

    def put_away(self) -> bool:
        """True: there was something."""
        had, self._words, self._count = bool(self._words), "", 0
        if had:
            self.settle()
        return had

    def settle(self) -> None:
        """Every screen that can be seen says so, or no longer does."""
        for screen in self._screens():
            lines = screen.query(Complaint)
            if not self._words:
                lines.remove()
                continue
            line = lines.first() if lines else Complaint()
            if not lines:
                screen.mount(line, before=screen.query_one(KeyBar))
            line.words = self._told()

    def _told(self) -> str:
        desk = self._console.desk
        back, log = (key_name(key_of(ACTIONS[name], desk)) for name in ("back", "log"))
        sign = "x" if self._console.ascii_only else "✖"
        more = f" ({self._count - 1} more before it)" if self._count > 1 else ""
        return f"{sign} {self._words}{more}  [{back} puts this away, {log} shows what was done]"

    def _screens(self) -> Iterable[Screen[object]]:
        with suppress(IndexError):
            # Below them lies the one that Textual brings.
            for screen in self._console.screen_stack[1:]:
                if not isinstance(screen, ModalScreen) and screen.query(KeyBar):
                    yield screen
