"""Looks at the groups again and again, on a thread, while somebody sees them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from mam_core.operations.groups import Group, groups, scaled_by
from mam_core.registry import Registry
from mam_tui.desk import Desk
from mam_tui.rounds import Rounds

_LOOK_SEC = 1.0


class GroupLook(NamedTuple):
    """What one look found."""

    groups: tuple[Group, ...] = ()
    scaled_by: str = ""
    trouble: str = ""


class GroupWatch:
    """`deliver` is called on the looking thread. The registry is opened there, and kept."""

    def __init__(self, desk: Desk, deliver: Callable[[GroupLook], object]) -> None:
        self._desk = desk
        self._deliver = deliver
        self._registry: Registry | None = None
        self._opened = ExitStack()
        self.rounds = Rounds("mam-groups", self._look, _LOOK_SEC, self._opened.close)

    def _look(self) -> None:
        try:
            if self._registry is None:
                self._registry = self._opened.enter_context(self._desk.open_registry())
            config = self._desk.config
            found = tuple(groups(self._registry, config))
            look = GroupLook(found, scaled_by(self._registry, config))
        except Exception as problem:  # never silent, and never the end of looking
            self._registry = None
            self._opened.close()
            look = GroupLook(trouble=str(problem) or type(problem).__name__)
        self._deliver(look)
