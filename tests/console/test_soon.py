"""What is to be done soon is done, also when its time has passed before anybody looked."""

from __future__ import annotations

import time

from textual.app import App

from mam_tui.soon import soon
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
