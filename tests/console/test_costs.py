"""What the console's speed rests on, in counts: lines, frames, looks and modules, never seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mam_core.config import load
from mam_core.records import Status
from mam_core.stores.base import Query
from mam_core.stores.files import FilesStore
from mam_core.summaries import Summary
from mam_core.wiring import open_registry
from mam_tui.bridge import Bridge
from mam_tui.columns import BY_URGENCY, sort_key
from mam_tui.model import Board, Effect, Order
from mam_tui.rows import Row
from mam_tui.widgets.detail.pane import Screenful
from mam_tui.widgets.detail.sgr import parse
from tests.console.board_story import Told, told
from tests.console.story import summary
from tests.support.patience import eventually

#: Far more than fit on a screen of 24 lines.
MANY = 200


class Counted:
    """How many frames were drawn, and how many lines of the table."""

    def __init__(self, console: Told, frames: list[str]) -> None:
        self._console = console
        self._all = frames
        self._frames, self._lines = len(frames), console.table.lines_drawn

    @property
    def frames(self) -> int:
        return len(self._all) - self._frames

    @property
    def lines(self) -> int:
        return self._console.table.lines_drawn - self._lines


def jobs(count: int = MANY) -> list[Summary]:
    return [summary(number) for number in range(count)]


class TestAChange:
    async def test_of_one_job_that_is_seen_draws_one_line(
        self, tmp_path: Path, frames: list[str]
    ) -> None:
        async with told(tmp_path, jobs()) as console:
            counted = Counted(console, frames)
            await console.happens(summary(3, head="Another text"))
            assert "Another text" in console.text()
            assert (counted.lines, counted.frames) == (1, 1)

    async def test_of_a_job_that_is_not_seen_draws_nothing(
        self, tmp_path: Path, frames: list[str]
    ) -> None:
        async with told(tmp_path, jobs()) as console:
            counted = Counted(console, frames)
            await console.happens(summary(MANY - 1, head="Another text"))
            assert (counted.lines, counted.frames) == (0, 0)

    async def test_a_thousand_at_once_are_one_frame(
        self, tmp_path: Path, frames: list[str]
    ) -> None:
        async with told(tmp_path, jobs(1_000)) as console:
            counted = Counted(console, frames)
            await console.happens(*(summary(number, head="Now") for number in range(1_000)))
            assert counted.frames == 1
            assert counted.lines <= console.table.size.height

    async def test_that_changes_nothing_draws_nothing(
        self, tmp_path: Path, frames: list[str]
    ) -> None:
        async with told(tmp_path, jobs()) as console:
            counted = Counted(console, frames)
            for _ in range(5):
                console.app._show(console.app.bridge.take())
                await console.pilot.pause()
            assert (counted.lines, counted.frames) == (0, 0)

    @pytest.mark.parametrize("count", [100, 20_000])
    def test_costs_one_key_however_many_jobs_there_are(self, count: int) -> None:
        made: list[str] = []

        def key(row: Row, name: str) -> Any:
            made.append(row.job_id)
            return sort_key(row, name)

        board = Board(key, Order(BY_URGENCY))
        board.load(jobs(count))
        made.clear()
        assert board.put(summary(50, head="Another text")) is Effect.LINE
        assert board.put(summary(51, Status.RUNNING)) is Effect.MOVED
        assert len(made) <= 2 * 2


async def test_while_nothing_happens_nothing_is_drawn(tmp_path: Path, frames: list[str]) -> None:
    """Two ticks pass, and no job runs: there is no clock to be seen."""
    async with told(tmp_path, jobs()) as console:
        counted = Counted(console, frames)
        for _ in range(2):
            console.app._tick()
            await console.pilot.pause()
        assert (counted.lines, counted.frames) == (0, 0)


def test_of_a_screen_only_lines_that_changed_are_parsed() -> None:
    """What a look costs beyond that, no process, is shown where tmux is looked at."""
    screen = Screenful()
    lines = [f"\x1b[3{number % 8}mline {number}\x1b[0m of a screen" for number in range(40)]
    parse.cache_clear()
    screen.put(lines)
    assert parse.cache_info().misses == len(lines)
    lines[7] = "\x1b[1mother\x1b[0m words"
    screen.put(lines)
    screen.put(lines)
    assert parse.cache_info().misses == len(lines) + 1


def test_all_jobs_are_read_once_before_they_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "jobs")
    with open_registry(path) as registry:
        registry.register([{"prompt": "a", "agent": "x", "agent_session": "tmux:a"}])
    looks: list[Query] = []
    find = FilesStore.find

    def count(self: FilesStore, query: Query) -> Any:
        looks.append(query)
        return find(self, query)

    monkeypatch.setattr(FilesStore, "find", count)
    bridge = Bridge(path, load(), lambda: None, with_duties=False)
    bridge.start()
    try:
        taken = eventually(lambda: bridge.take().loaded, "the jobs are read")
        assert [job.head for job in taken.jobs.jobs] == ["a"]
        assert looks.count(Query()) == 1
    finally:
        bridge.close()


@pytest.mark.parametrize(
    "part",
    [
        "mam_core.agents",
        "mam_core.operations.broker",
        "mam_core.operations.shown",
        "mam_core.registry",
        "mam_core.stores.base",
        "mam_core.stores.files",
        "mam_tui.screens.forms",
        "mam_tui.screens.help",
        "mam_tui.screens.job",
        "mam_tui.screens.sessions",
        "mam_tui.sessions.rows",
        "mam_tui.widgets.detail.diff",
        "paho",
        "textual.widgets._text_area",
        "watchfiles",
    ],
)
def test_the_first_frame_does_not_wait_for(part: str, loaded: frozenset[str]) -> None:
    assert part not in loaded


@pytest.fixture(scope="module")
def loaded() -> frozenset[str]:
    """The modules of a console that is about to begin."""
    code = "import sys, mam_tui.entry; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "mam_tui.screens.board" in done.stdout.split()
    return frozenset(done.stdout.split())
