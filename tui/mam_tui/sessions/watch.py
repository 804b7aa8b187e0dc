"""Looks at the sessions once a second, on a thread, while somebody sees them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from mam_core.operations.session_looks import SessionLooks
from mam_tui.desk import Desk
from mam_tui.rounds import Rounds
from mam_tui.sessions.rows import SessionRow, Usage

_LOOK_SEC = 1.0


class SessionLook(NamedTuple):
    """What one look found."""

    rows: tuple[SessionRow, ...] = ()
    trouble: str = ""
    is_stale: bool = False  #: nothing could be read: what was seen before is all there is
    has_tmux: bool = True


class SessionWatch:
    """`deliver` is called on the looking thread. The registry is opened there, and kept."""

    def __init__(self, desk: Desk, deliver: Callable[[SessionLook], object]) -> None:
        self._desk = desk
        self._deliver = deliver
        self._looks: SessionLooks | None = None
        self._opened = ExitStack()
        self._usage = Usage()
        self.rounds = Rounds("mam-sessions", self._look, _LOOK_SEC, self._opened.close)

    def _look(self) -> None:
        desk = self._desk
        try:
            if self._looks is None:
                registry = self._opened.enter_context(desk.open_registry())
                self._looks = SessionLooks(registry, desk.registry_path, desk.panes)
            now = self._looks.look()
        except Exception as problem:  # never silent, and never the end of looking
            self._looks = None
            self._opened.close()
            why = str(problem) or type(problem).__name__
            self._deliver(SessionLook(trouble=why, is_stale=True))
            return
        rows = self._usage.rows(now, time.monotonic())
        trouble = now.trouble if rows else ""
        self._deliver(SessionLook(tuple(rows), trouble, has_tmux=now.has_tmux))
