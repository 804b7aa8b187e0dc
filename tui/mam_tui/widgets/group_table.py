"""The table of groups: few lines, by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

from textual.message import Message

from mam_core.operations.groups import Group
from mam_core.safe_text import cell_width, one_line
from mam_tui.groups.columns import COLUMNS, GROUP_COLUMNS, used_by
from mam_tui.widgets.line_table import LineTable

_MOST_OF_A_NAME = 28


class GroupTable(LineTable[Group]):
    """Shows what it is given; the cursor stays with its group."""

    class Moved(Message):
        """Another group is under the cursor."""

    def __init__(self, *, ascii_only: bool = False, clock: Callable[[], float] = time.time) -> None:
        super().__init__(GROUP_COLUMNS, ascii_only=ascii_only, clock=clock)
        self._groups: Sequence[Group] = ()
        self._at = 0

    def put(self, groups: Sequence[Group]) -> None:
        name = self.group.name if self.group is not None else ""
        self._groups = groups
        line = self.line_of(name)
        self._at = max(0, min(self._at, len(groups) - 1)) if line is None else line
        self.lay_out()
        self.moved()

    @property
    def group(self) -> Group | None:
        return self._groups[self._at] if self._at < len(self._groups) else None

    # -- what it knows -------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return len(self._groups)

    def row_at(self, line: int) -> Group:
        return self._groups[line]

    def name_of(self, row: Group) -> str:
        return row.name

    def line_of(self, name: str) -> int | None:
        found = (line for line, one in enumerate(self._groups) if one.name == name)
        return next(found, None)

    @property
    def cursor_line(self) -> int | None:
        return self._at if self._groups else None

    def put_cursor(self, line: int) -> None:
        self._at = max(0, min(line, len(self._groups) - 1))

    @property
    def sorted_by(self) -> tuple[str, bool]:
        return "group", False

    @property
    def used(self) -> Collection[str]:
        return frozenset().union(*map(used_by, self._groups))

    def wide(self) -> Mapping[str, int]:
        widest = max((cell_width(one_line(one.name)) for one in self._groups), default=0)
        return {"group": max(COLUMNS["group"].width, min(_MOST_OF_A_NAME, widest))}

    def style_of(self, row: Group) -> str:
        """One that is full while others wait is what an operator looks for."""
        if row.waiting and (row.is_paused or (row.slots is not None and row.running >= row.slots)):
            return "blocked"
        return "working" if row.running else "idle"

    def cursor_moved(self) -> None:
        self.post_message(self.Moved())
