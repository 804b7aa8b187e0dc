"""``:audit`` and ``:schedules``: the words of the command line, on a page of the console."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from textual.widgets import Static

from mam_core.operations import doctor
from mam_core.wiring import open_registry
from mam_tui.screens.board import BoardScreen
from mam_tui.screens.page import Page
from tests.console.test_console import add, console
from tests.support.patience import until


@pytest.fixture(autouse=True)
def _no_place_of_the_persons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(doctor, "APART_SEC", 0.01)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "jobs")


def shows(page: Static, words: str) -> bool:
    return words in str(page.render())


async def test_each_is_a_page_that_is_read_and_left(path: str, tmp_path: Path) -> None:
    (tmp_path / "mam.toml").write_text(
        '[templates.t]\nprompt = "p"\nagent = "a"\nagent_session = "l"\n'
        '[schedules.nightly]\ncron = "0 3 * * *"\ntemplate = "t"\n'
    )
    with open_registry(path) as registry:
        add(registry, agent_session="tmux:waits")
    async with console(path) as pilot:
        for name, words in (("audit", "advice: nothing runs"), ("schedules", "nightly")):
            await pilot.press("colon", *name, "enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, Page))
            page = pilot.app.screen.query_one(Static)
            await until(pilot, partial(shows, page, words))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(pilot.app.screen, BoardScreen))


async def test_one_that_is_left_at_once_harms_nothing(path: str) -> None:
    async with console(path) as pilot:
        for _ in range(3):
            await pilot.press("colon", *"audit", "enter", "escape")
            await until(pilot, lambda: isinstance(pilot.app.screen, BoardScreen))
