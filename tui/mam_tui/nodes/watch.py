"""Listens for hosts while somebody sees them: one look a second, over one connection."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from mam_core.operations.nodes import Node, NodeLooks
from mam_tui.desk import Desk
from mam_tui.rounds import Rounds
from mam_tui.threads import started

_LOOK_SEC = 1.0


class NodeLook(NamedTuple):
    """What one look found; None: nothing could be read, and what was seen before is all."""

    nodes: tuple[Node, ...] | None = ()
    trouble: str = ""
    is_stale: bool = False  #: the hosts may be otherwise by now


class NodeWatch:
    """`deliver` is called on the looking thread. Registry and line are opened there, and kept."""

    def __init__(self, desk: Desk, deliver: Callable[[NodeLook], object]) -> None:
        self._desk = desk
        self._deliver = deliver
        self._looks: NodeLooks | None = None
        self._opened = ExitStack()
        self._lock = threading.Lock()  #: whoever leaves may not close what is being opened
        self._is_over = False
        self.rounds = Rounds("mam-nodes", self._look, _LOOK_SEC)

    def close(self) -> None:
        """Not waited for: a broker that is gone is said goodbye to for seconds."""
        self.rounds.close()
        started("mam-nodes", self._end)

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
            self._opened.close()

    def _look(self) -> None:
        with self._lock:
            if self._is_over:
                return
            try:
                now = self._ready().look()
            except Exception as problem:  # never silent, and never the end of looking
                self._looks = None
                self._opened.close()
                why = str(problem) or type(problem).__name__
                self._deliver(NodeLook(None, why, is_stale=True))
                return
        self._deliver(NodeLook(tuple(now.nodes), now.trouble, not now.is_heard))

    def _ready(self) -> NodeLooks:
        if self._looks is None:
            desk = self._desk
            registry = self._opened.enter_context(desk.open_registry())
            self._looks = NodeLooks(registry, desk.registry_path, desk.config)
            self._opened.callback(self._looks.close)
        return self._looks
