"""A list that is read whole at every look, in an order, with a cursor that sticks to a name.

For what there are few of, sessions and hosts: all rows are sorted at each look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from mam_tui.model import Order


class Named(Protocol):
    """By its name it is found again."""

    @property
    def name(self) -> str: ...


R = TypeVar("R", bound=Named)


class ShortList(Generic[R]):
    """The rows in their order."""

    def __init__(self, key: Callable[[R, str], Any], order: Order) -> None:
        self._key = key
        self.order = order
        self.rows: list[R] = []
        self.cursor: str | None = None

    def put(self, rows: Iterable[R]) -> bool:
        """Whether lines have come, gone or changed places."""
        before, self.rows = self.rows, self._sorted(rows)
        self._keep(before)
        return [row.name for row in before] != [row.name for row in self.rows]

    def sort(self, order: Order) -> None:
        self.order = order
        self.rows = self._sorted(self.rows)

    def _sorted(self, rows: Iterable[R]) -> list[R]:
        def key(row: R) -> tuple[Any, ...]:
            value = self._key(row, self.order.name)
            return (value is None, value if value is not None else 0)

        by_name = sorted(rows, key=lambda row: row.name)
        return sorted(by_name, key=key, reverse=self.order.reverse)

    def _keep(self, before: list[R]) -> None:
        """The one under the cursor is gone: the line that takes its place, else the last."""
        if not self.rows or self.line is not None:
            self.cursor = self.cursor if self.rows else None
            return
        at = next((n for n, row in enumerate(before) if row.name == self.cursor), 0)
        self.move_to(at)

    @property
    def line(self) -> int | None:
        """Where the cursor is."""
        return self.line_of(self.cursor) if self.cursor is not None else None

    def line_of(self, name: str) -> int | None:
        found = (n for n, row in enumerate(self.rows) if row.name == name)
        return next(found, None)

    @property
    def row(self) -> R | None:
        line = self.line
        return None if line is None else self.rows[line]

    def move_to(self, line: int) -> None:
        if self.rows:
            self.cursor = self.rows[max(0, min(line, len(self.rows) - 1))].name

    @property
    def used(self) -> frozenset[str]:
        """Of the columns that are seldom used those that hold something for at least one row."""
        return frozenset()
