"""The table of sessions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import ClassVar

from mam_tui.sessions.columns import SESSION_COLUMNS
from mam_tui.sessions.rows import SessionList, SessionRow
from mam_tui.widgets.short_table import ShortTable


class SessionTable(ShortTable[SessionRow]):
    """Shows a list of sessions."""

    MOST: ClassVar[Mapping[str, int]] = {"name": 24, "job": 26}

    def __init__(
        self,
        sessions: SessionList,
        *,
        ascii_only: bool = False,
        clock: Callable[[], float] = time.time,
        id: str | None = None,
    ) -> None:
        super().__init__(SESSION_COLUMNS, sessions, ascii_only=ascii_only, clock=clock, id=id)

    def full_text(self, row: SessionRow, name: str) -> str:
        return row.name if name == "name" else row.job_id

    def style_of(self, row: SessionRow) -> str:
        return row.face.style
