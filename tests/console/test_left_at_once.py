"""A dialog that is left before it stands takes nothing along."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from textual.app import App

from mam_tui.screens.confirm import Confirm
from mam_tui.screens.deeds import DeedsScreen
from mam_tui.screens.dialog import Dialog
from mam_tui.screens.forms.line_form import LineForm
from mam_tui.screens.forms.say_form import SayForm

MAKERS: Mapping[str, Callable[[], Dialog[Any]]] = {
    "confirm": lambda: Confirm("Really?", (), "do it"),
    "deeds": lambda: DeedsScreen([]),
    "line": lambda: LineForm("Where to?", "here"),
    "say": lambda: SayForm("k7vgku7d"),
}


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
