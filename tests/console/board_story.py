"""A console whose jobs are told to it, so that a story decides what happens and when."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mam_core.config import load
from mam_core.operations.listing import Listing
from mam_core.operations.preferences import Preferences
from mam_core.summaries import Summary
from mam_tui.app import Console
from mam_tui.arrivals import Loaded
from mam_tui.bridge import Bridge
from mam_tui.desk import Desk
from mam_tui.folding import Folded
from mam_tui.own_settings import check
from mam_tui.widgets.job_table import JobTable
from tests.console.staging import Opened
from tests.console.story import NOW


class _Told(Bridge):
    """Brings these jobs, and looks nowhere."""

    jobs: Sequence[Summary] = ()
    is_slow = False

    def start(self) -> None:
        if not self.is_slow:
            self.read()

    def read(self) -> None:
        self._put(Loaded(Listing(list(self.jobs), [])))

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Told(Opened):
    """With what its jobs are told by."""

    @property
    def table(self) -> JobTable:
        return self.app.board.table

    @property
    def cursor(self) -> str | None:
        return self.app.desk.board.cursor

    def is_on(self, screen: type) -> bool:
        return isinstance(self.app.screen, screen)

    def in_sight(self) -> list[str]:
        """The jobs that are seen, from the top."""
        lines = range(self.table.scroll_offset.y, self.table.rows)[: self.table.size.height - 1]
        return [self.app.desk.board[line].job_id for line in lines]

    async def until_read(self) -> None:
        """Of a slow registry: its jobs come now."""
        assert isinstance(self.app.bridge, _Told)
        self.app.bridge.read()
        await self.until(lambda: not self.app.link.is_loading, "the jobs are read")
        await self.pilot.pause()

    async def happens(self, *jobs: Summary, gone: Sequence[str] = ()) -> None:
        """These records are new or different now; as one batch."""
        records = {job.job_id: job for job in jobs} | dict.fromkeys(gone)
        self.app._show(Folded(None, {**records}, {}, [], []))
        await self.pilot.pause()


@asynccontextmanager
async def told(
    folder: Path,
    jobs: Sequence[Summary] = (),
    size: tuple[int, int] = (100, 24),
    *,
    config: str = "",
    kept: Preferences | None = None,
    is_slow: bool = False,
    **more: Any,
) -> AsyncIterator[Told]:
    """`config` is the text of ``mam.toml``; a slow registry is read when the test says so."""
    (folder / "mam.toml").write_text(config)
    settings = load(str(folder / "mam.toml"))
    desk = Desk(str(folder / "jobs"), settings, keys=check(settings), clock=lambda: NOW)

    def bridge(ring: Callable[[], None]) -> Bridge:
        made = _Told(desk.registry_path, settings, ring, with_duties=False)
        made.jobs, made.is_slow = jobs, is_slow
        return made

    app = Console(
        desk, bridge=bridge, kept=kept or Preferences(panel=False, hint_seen=True), **more
    )
    async with app.run_test(size=size) as pilot:
        await pilot.pause(0.1)
        while app.link.is_loading and not is_slow:
            await pilot.pause(0.02)
        await pilot.pause()
        yield Told(app, pilot)
