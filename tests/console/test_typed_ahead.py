"""Keys that come faster than the screen follows, as on a busy machine: none does harm."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.widgets import Input

from mam_core.operations.outcome import Outcome
from mam_core.registry import Registry
from mam_tui.desk import Desk
from mam_tui.screens.confirm import Confirm
from mam_tui.widgets.command_line import CommandLine
from tests.console.board_story import Told, told
from tests.console.story import summary

KEYS = {":": "colon", "/": "slash"}


def burst(seen: Told, letters: str) -> None:
    """All at once, before anything is drawn."""
    for letter in letters:
        seen.app.post_message(events.Key(KEYS.get(letter, letter), letter))


async def test_a_yes_from_before_the_question_is_none(tmp_path: Path) -> None:
    async with told(tmp_path, [summary(1)]) as seen:
        burst(seen, "cy")
        await seen.pilot.pause()
        assert seen.is_on(Confirm)
        assert not seen.app.desk.deeds
        await seen.pilot.press("c", "enter")
        await seen.pilot.pause()
        assert not seen.is_on(Confirm)
        assert not seen.app.desk.deeds


async def test_a_question_that_is_left_at_once_is_left(tmp_path: Path) -> None:
    """Before it was whole."""
    async with told(tmp_path, [summary(1)]) as seen:
        for _ in range(5):
            await seen.pilot.press("c")
            seen.app.pop_screen()
        await seen.pilot.pause()
        assert not seen.is_on(Confirm)


@pytest.mark.parametrize("line", [":copy", "/cyan"])
async def test_letters_after_the_key_of_a_line_belong_to_it(tmp_path: Path, line: str) -> None:
    """`c` and `y` would be keys of the board."""
    async with told(tmp_path, [summary(1)]) as seen:
        burst(seen, line)
        await seen.pilot.pause()
        assert not seen.is_on(Confirm)
        assert [one.value for one in seen.app.screen.query(Input) if one.has_focus] == [line[1:]]
        await seen.pilot.press("slash")  # a letter now
        assert [one.value for one in seen.app.screen.query(Input) if one.has_focus] == [
            f"{line[1:]}/"
        ]
        assert seen.app.screen.query(CommandLine)


def test_a_mistake_of_ours_is_told(desk: Desk) -> None:
    """On a thread nobody sees a traceback, and an act that says nothing looks like none."""

    def act(registry: Registry) -> list[Outcome]:
        raise AttributeError("no encoding")

    deed = desk.do(["spawn"], act)
    assert not deed.ok
    assert deed.sentences == ("this is a mistake in mam: AttributeError: no encoding",)


def test_libtmux_is_imported_where_a_console_has_taken_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks for an encoding, and what Textual puts there has none."""
    from mam_core.tmux.server import TmuxServer

    class Taken:
        def write(self, text: str) -> None: ...

    taken: Any = Taken()
    for name in [name for name in sys.modules if name.partition(".")[0] == "libtmux"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "stdout", taken)
    assert TmuxServer(str(tmp_path), "mam-test-none")._libtmux().socket_name == "mam-test-none"
