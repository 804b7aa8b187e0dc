"""Lines that nobody would type, into the ``:`` line of a console at work."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from textual.widgets import Input

from mam_core.wiring import open_registry
from mam_tui import commands
from mam_tui.screens.board import BoardScreen
from mam_tui.screens.view import View
from mam_tui.widgets.command_line import CommandLine
from tests.console.staging import Opened, add, opened
from tests.fuzz.mutants import SEED
from tests.support.handles import close_later

#: They leave, or give the terminal to another program.
_NOT_HERE = {"quit", "demo", "suspend", "attach", "edit", "bulk", "log"}
_WORDS = (
    "",
    "",
    "x",
    "job0001",
    "status:error",
    "/(a/",
    "age",
    "nord",
    "-1",
    "[/b]",
    "\u202e",
    "../x",
)


@pytest.mark.parametrize(
    "count", [10, pytest.param(1000, marks=[pytest.mark.release, pytest.mark.timeout(1800)])]
)
async def test_are_an_act_or_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Whatever it opens is left by esc; nothing brings the console down."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    registry = close_later(open_registry(str(tmp_path / "jobs")))
    for number in range(3):
        add(registry, f"[b]job {number}[/] \x1b[31m", group="night")
    names = sorted({*commands.names(), *commands.aliases()} - _NOT_HERE)
    chance = random.Random(SEED)
    async with opened(str(tmp_path / "jobs")) as console:
        for _ in range(count):
            line = f"{chance.choice(names)} {chance.choice(_WORDS)}"
            found = commands.aliases().get(line.split()[0], line.split()[0])
            if found in _NOT_HERE or found.startswith("stop"):
                continue
            await _entered(console, line)
            assert console.app._exception is None, line
            await _home(console)
    registry.store.close()


async def _entered(console: Opened, line: str) -> None:
    await console.press("colon")
    found = list(console.app.screen.query(CommandLine))
    if not found or not found[0].has_class("-open"):
        return  # a view in which there is no such line
    found[0].query_one(Input).value = line
    await console.press("enter")
    await console.pilot.pause()


async def _home(console: Opened) -> None:
    """Back where one began, however deep that was."""
    for _ in range(6):
        if isinstance(console.app.screen, BoardScreen) and console.app.focused is None:
            return
        if isinstance(console.app.screen, View) and not isinstance(console.app.focused, Input):
            await console.press("1")
        else:
            await console.press("escape")
