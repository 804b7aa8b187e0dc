"""A dialog that is left before it is there takes nothing along; a view that is only being opened
does not mind what arrives."""

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


async def test_a_view_that_is_only_being_opened_does_not_mind_what_arrives(tmp_path: Path) -> None:
    """On a busy machine the next tick, or what arrives, finds it without its parts."""
    async with told(tmp_path, [summary(1)]) as seen:
        for name in VIEWS:
            seen.app.action_view(name)
            seen.app.settle()
            arrived = Folded(None, {"job0001": summary(1, head="New")}, {}, [], [])
            seen.app._show(arrived)
            seen.app.board.needs_changed(arrived)
            if VIEWS[name].shows_past:
                seen.app.travel._tell(None)
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
