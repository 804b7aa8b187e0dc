"""What is to be done soon is done, also when its time has passed before anybody looked."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest
from textual.app import App

from mam_core.safe_text import cell_width
from mam_tui.soon import soon
from tests.console.board_story import Told, told
from tests.console.story import summary
from tests.support.patience import until


def _be_busy() -> None:
    """As when another thread has the word."""
    time.sleep(0.02)


async def test_what_is_due_already_is_still_done() -> None:
    done: list[str] = []
    app: App[None] = App()
    async with app.run_test() as pilot:
        soon(app, 0.0, lambda: done.append("at once"))
        soon(app, 0.001, lambda: done.append("late"))
        _be_busy()
        await until(pilot, lambda: sorted(done) == ["at once", "late"])


async def test_what_is_cancelled_is_not_done() -> None:
    done: list[str] = []
    app: App[None] = App()
    async with app.run_test() as pilot:
        soon(app, 0.01, lambda: done.append("never")).cancel()
        await pilot.pause(0.05)
        assert done == []


async def test_a_new_size_is_seen_though_the_timer_for_it_never_rings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Textual has one for it, of the kind that a busy machine forgets."""

    class Forgotten:
        def stop(self) -> None: ...

    async with told(tmp_path, [summary(1)]) as seen:
        monkeypatch.setattr(seen.app, "set_timer", lambda *_, **__: Forgotten())
        for width, height in ((60, 20), (90, 30)):
            await seen.pilot.resize_terminal(width, height)
            await seen.until(partial(_fits, seen, width, height), "it fits")


def _fits(seen: Told, width: int, height: int) -> bool:
    lines = seen.text().split("\n")
    return len(lines) == height and all(cell_width(line) == width for line in lines)
