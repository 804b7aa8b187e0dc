"""The table of hosts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import ClassVar

from mam_core.operations.nodes import Node
from mam_tui.nodes.columns import NODE_COLUMNS
from mam_tui.nodes.rows import NODE_FACES, NodeList
from mam_tui.widgets.short_table import ShortTable


class NodeTable(ShortTable[Node]):
    """Shows a list of hosts."""

    MOST: ClassVar[Mapping[str, int]] = {"name": 24, "why": 40}

    def __init__(
        self,
        nodes: NodeList,
        *,
        ascii_only: bool = False,
        clock: Callable[[], float] = time.time,
        id: str | None = None,
    ) -> None:
        super().__init__(NODE_COLUMNS, nodes, ascii_only=ascii_only, clock=clock, id=id)

    def full_text(self, row: Node, name: str) -> str:
        return row.name if name == "name" else f"drained: {row.why}"

    def style_of(self, row: Node) -> str:
        return NODE_FACES[row.state].style
