"""A fleet without tmux: sessions that are told, and screens whose every look is counted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mam_core.operations.panes import Capture, PaneFact
from mam_core.operations.sessions import Seen, SessionState
from mam_core.records import Status
from mam_tui.screens.fleet import FleetScreen
from mam_tui.sessions.rows import SessionRow
from mam_tui.sessions.watch import SessionLook
from tests.console.board_story import Told, told
from tests.console.picture_story import still_sessions
from tests.console.story import NOW, summary


def session(number: int, job_id: str = "", **more: Any) -> SessionRow:
    """One that is alive, with a pane and perhaps a job."""
    name = f"s{number:02}"
    pane = PaneFact(
        *(f"%{number}", name, 1, False, None, None, "", f"tmux:{name}"),
        *("claude", job_id, 1, 80, 24, NOW, NOW),
    )
    seen = Seen(name, SessionState.ALIVE, pane=pane, jobs=(job_id,) if job_id else ())
    return SessionRow(seen._replace(**more), job_id=job_id)


class Screens:
    """What agents show, without tmux; every look is counted."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.looks: list[tuple[str, ...]] = []

    def facts(self) -> list[PaneFact]:
        return []

    def captures(self, pane_ids: Sequence[str]) -> dict[str, Capture]:
        self.looks.append(tuple(pane_ids))
        return {
            one: Capture(tuple(self.texts[one]), (0, 0), "")
            for one in pane_ids
            if one in self.texts
        }

    def close(self) -> None:
        return


class Stage(NamedTuple):
    """The fleet, seen."""

    console: Told
    view: FleetScreen
    screens: Screens

    async def until_looked(self, times: int) -> None:
        await self.console.until(lambda: len(self.screens.looks) >= times, f"{times} looks")

    async def until(self, *words: str) -> None:
        await self.console.until_seen(*words)

    @property
    def focused(self) -> str | None:
        return self.console.app.desk.sessions.cursor


@asynccontextmanager
async def fleet(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: Sequence[SessionRow],
    size: tuple[int, int] = (120, 40),
    *,
    has_tmux: bool = True,
    **more: Any,
) -> AsyncIterator[Stage]:
    still_sessions(monkeypatch, lambda: SessionLook(tuple(rows), has_tmux=has_tmux))
    jobs = [
        summary(number, Status.RUNNING, group="odd" if number % 2 else None)
        for number in range(1, len(rows) + 1)
    ]
    async with told(folder, jobs, size, **more) as console:
        screens = Screens()
        for row in rows:
            if row.pane_id:
                screens.texts[row.pane_id] = [f"\x1b[32m{row.name}\x1b[0m line {n}" for n in "abc"]
        vars(console.app.desk)["panes"] = screens
        await console.press("3")
        view = console.app.screen
        assert isinstance(view, FleetScreen)
        yield Stage(console, view, screens)


def rows(count: int) -> list[SessionRow]:
    return [session(number, f"job{number:04}") for number in range(1, count + 1)]
