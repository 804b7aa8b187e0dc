"""A dialog that is left before it stands takes nothing along; a view that does not stand yet hears
nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from textual.app import App

from mam_tui.folding import Folded
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.deeds import DeedsScreen
from mam_tui.screens.dialog import Dialog
from mam_tui.screens.forms.line_form import LineForm
from mam_tui.screens.forms.say_form import SayForm
from mam_tui.views import VIEWS
from tests.console.board_story import told
from tests.console.story import summary

MAKERS: Mapping[str, Callable[[], Dialog[Any]]] = {
    "confirm": lambda: Confirm("Really?", (), "do it"),
    "deeds": lambda: DeedsScreen([]),
    "line": lambda: LineForm("Where to?", "here"),
    "say": lambda: SayForm("k7vgku7d"),
}


async def test_a_view_that_is_only_being_opened_is_told_nothing(tmp_path: Path) -> None:
    """On a busy machine the next tick, or what arrives, finds it without its parts."""
    async with told(tmp_path, [summary(1)]) as seen:
        for name in VIEWS:
            seen.app.action_view(name)
            seen.app.settle()
            seen.app._show(Folded(None, {"job0001": summary(1, head="New")}, {}, [], []))
            await seen.pilot.pause()
            assert seen.app.views.current is None or seen.app.views.current.is_whole
        assert seen.app._exception is None


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("turns", range(4))
async def test_esc_is_faster(name: str, turns: int) -> None:
    app: App[None] = App()
    async with app.run_test() as pilot:
        dialog = MAKERS[name]()
        app.push_screen(dialog)
        for _ in range(turns):
            await asyncio.sleep(0)
        dialog.dismiss(None)
        await pilot.pause()
        assert app.screen is not dialog
