"""One job on the whole screen: where it was opened from, what can be done there, how it is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam_core.records import Status
from mam_tui.screens.attention import AttentionScreen
from mam_tui.screens.charts import ChartsScreen
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.job import JobScreen
from tests.console.board_story import told
from tests.console.story import summary


@pytest.fixture(autouse=True)
def _nothing_of_the_persons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


async def test_left_by_the_key_of_a_view_it_is_gone(tmp_path: Path) -> None:
    """What happens afterwards is told to who is there."""
    async with told(tmp_path, [summary(1, Status.RUNNING), summary(2)]) as console:
        for key in ("4", "1"):
            await console.press("1", "enter")
            assert console.is_on(JobScreen)
            await console.press(key)
            await console.happens(summary(1, Status.RUNNING, attempt=2), summary(3))
            await console.pilot.pause(0.1)
        assert console.app.screen is console.app.board
        assert "job0003" in console.text()


async def test_it_says_where_it_was_opened(tmp_path: Path) -> None:
    async with told(tmp_path, [summary(1, Status.ERROR)]) as console:
        await console.press("enter")
        assert "mam board > job0001" in console.text()
        await console.press("escape")
        while not console.app.desk.needing.has_begun:
            await console.pilot.pause(0.02)
        await console.press("4", "enter")
        assert "mam attention > job0001" in console.text()
        await console.press("escape")
        assert console.is_on(AttentionScreen)


async def test_it_has_the_line_of_commands(tmp_path: Path) -> None:
    """Without it the letters of a command were keys: `c` asked whether to cancel, `y` said yes."""
    async with told(tmp_path, [summary(1, Status.RUNNING)]) as console:
        await console.press("enter", "colon", *"copy")
        assert console.is_on(JobScreen)
        assert ": copy" in console.text()
        await console.press("enter")
        assert not console.app.desk.deeds
        await console.press("colon", *"cancel", "enter")
        assert console.is_on(Confirm)
        await console.press("escape", "colon", *"charts", "enter")
        await console.pilot.pause()
        assert console.is_on(ChartsScreen)
        await console.press("1", "enter", "colon", *"back", "enter")
        await console.pilot.pause()
        assert console.app.screen is console.app.board


async def test_its_agent_can_be_talked_to_while_it_is_there(tmp_path: Path) -> None:
    async with told(tmp_path, [summary(1, Status.RUNNING)]) as console:
        await console.press("enter")
        job = console.app.screen
        assert isinstance(job, JobScreen)
        names = ("answer", "attach", "say")
        assert [job.lacks(name) for name in names] == [None] * 3
        assert "A answer" in console.text()
        await console.happens(summary(1, Status.COMPLETED))
        assert {job.lacks(name) for name in names} == {
            "only a running job has an agent that listens"
        }
        assert "A answer" not in console.text()
