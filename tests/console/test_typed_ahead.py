"""Keys that come faster than the screen follows, as on a busy machine: none does harm."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.widgets import Input, TextArea

from mam_core.operations.outcome import Outcome
from mam_core.registry import Registry
from mam_tui import key_queue
from mam_tui.desk import Desk
from mam_tui.screens import job_writing
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.forms.job_form import JobForm
from mam_tui.screens.history import HistoryScreen
from mam_tui.widgets.command_line import CommandLine
from tests.console.board_story import Told, told
from tests.console.story import summary

KEYS = {":": "colon", "/": "slash", "\n": "enter", "\x1b": "escape", " ": "space"}


def burst(seen: Told, letters: str) -> None:
    """All at once, before anything is drawn."""
    for letter in letters:
        seen.app.post_message(events.Key(KEYS.get(letter, letter), letter))


async def settled(seen: Told) -> None:
    """Every key was acted on."""
    await asyncio.sleep(0)  # they are in the queue of the app, which hands them to that of the keys
    await seen.until(lambda: seen.app.key_queue.is_free, "all keys are done")
    await seen.pilot.pause()


@asynccontextmanager
async def typed(folder: Path, letters: str) -> AsyncIterator[Told]:
    """A board with one job, on which these keys came at once and were acted on."""
    async with told(folder, [summary(1)]) as seen:
        burst(seen, letters)
        await settled(seen)
        yield seen


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The thread that prepares the form of `n` hangs until this is set."""
    over = threading.Event()

    def hangs(_: Any) -> list[Any]:
        over.wait()
        return []

    monkeypatch.setattr(job_writing, "choices", hangs)
    yield over
    over.set()


def in_the_box(seen: Told) -> list[str]:
    """What stands in the box that has the focus."""
    box = seen.app.focused
    if isinstance(box, Input):
        return [box.value]
    return [box.text] if isinstance(box, TextArea) else []


async def until_late(seen: Told) -> None:
    await seen.until_told("slow to open")


async def test_a_yes_from_before_the_question_is_none(tmp_path: Path) -> None:
    async with typed(tmp_path, "cy") as seen:
        assert seen.is_on(Confirm)
        assert not seen.app.desk.deeds
        await seen.pilot.press("c", "enter")
        await seen.pilot.pause()
        assert not seen.is_on(Confirm)
        assert not seen.app.desk.deeds


@pytest.mark.parametrize("letter", ["c", "r", "e", " "])
async def test_a_key_from_before_the_first_rows_is_for_none_of_them(
    tmp_path: Path, letter: str
) -> None:
    """Nobody has seen the job that would be under the cursor."""
    async with told(tmp_path, [summary(1)], is_slow=True) as seen:
        burst(seen, letter)
        await seen.until_told("still reading the registry: no job is shown yet")
        await seen.until_read()
        await settled(seen)
        assert seen.app.screen is seen.app.board
        assert not seen.app.desk.board.marks
        assert not seen.app.desk.deeds
        burst(seen, "c")
        await seen.until_on(Confirm)


async def test_a_question_that_is_left_at_once_is_left(tmp_path: Path) -> None:
    """Before it was whole."""
    async with told(tmp_path, [summary(1)]) as seen:
        for _ in range(5):
            await seen.pilot.press("c")
            seen.app.pop_screen()
        await seen.pilot.pause()
        assert not seen.is_on(Confirm)


@pytest.mark.parametrize(
    ("letters", "view", "searched"),
    [
        ("7/flaky\n", "history", "flaky"),
        ("8/x\n1/abc\n", "board", "abc"),
        ("7/flaky\n1", "board", ""),
    ],
)
async def test_letters_reach_the_view_that_the_first_one_opens(
    tmp_path: Path, letters: str, view: str, searched: str
) -> None:
    async with typed(tmp_path, letters) as seen:
        assert seen.app.views.name == view
        board, history = seen.app.desk.board, seen.app.views.current
        found = history.text if isinstance(history, HistoryScreen) else board.filter.text
        assert found == searched


@pytest.mark.parametrize("prompt", ["hello", "cyhello"])
async def test_letters_reach_the_form_that_a_thread_prepares(tmp_path: Path, prompt: str) -> None:
    async with typed(tmp_path, f"n{prompt}") as seen:
        assert seen.is_on(JobForm)
        assert in_the_box(seen) == [prompt]


async def test_what_was_pasted_keeps_its_place_among_the_keys(tmp_path: Path) -> None:
    async with told(tmp_path, [summary(1)]) as seen:
        burst(seen, "/a")
        seen.app.post_message(events.Paste("bcd"))
        burst(seen, "e")
        await settled(seen)
        assert in_the_box(seen) == ["abcde"]


async def test_hundreds_of_keys_are_all_acted_on_in_their_order(tmp_path: Path) -> None:
    text = "".join(chr(ord("a") + n % 26) for n in range(300))
    async with typed(tmp_path, f"/{text}") as seen:
        assert in_the_box(seen) == [text]


async def test_the_way_out_waits_for_nothing(tmp_path: Path) -> None:
    async with told(tmp_path, [summary(1)]) as seen:
        burst(seen, "n" + "hello" * 100)
        seen.app.post_message(events.Key("ctrl+q", None))
        await seen.until(lambda: not seen.app.is_running, "the console is left")
        assert not seen.app.desk.deeds


async def test_what_was_typed_for_a_form_that_does_not_open_is_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: threading.Event
) -> None:
    """`c` and `y` would cancel a job."""
    monkeypatch.setattr(key_queue, "_PATIENCE_SEC", 0.5)
    async with told(tmp_path, [summary(1)]) as seen:
        burst(seen, "ncy7")
        await until_late(seen)
        burst(seen, "cy7")
        await asyncio.sleep(0.1)
        assert seen.app.views.name == "board"
        assert not seen.is_on(Confirm)
        burst(seen, "\x1b/a")
        await seen.until(lambda: in_the_box(seen) == ["a"], "esc goes back to the board")
        held.set()
        await seen.until_on(JobForm)


async def test_a_form_that_opens_late_gets_what_is_typed_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: threading.Event
) -> None:
    monkeypatch.setattr(key_queue, "_PATIENCE_SEC", 0.1)
    async with told(tmp_path, [summary(1)]) as seen:
        burst(seen, "nlost")
        await until_late(seen)
        held.set()
        await seen.until_on(JobForm)
        burst(seen, "kept")
        await settled(seen)
        assert in_the_box(seen) == ["kept"]


@pytest.mark.parametrize("line", [":copy", "/cyan"])
async def test_letters_after_the_key_of_a_line_belong_to_it(tmp_path: Path, line: str) -> None:
    """`c` and `y` would be keys of the board."""
    async with typed(tmp_path, line) as seen:
        assert not seen.is_on(Confirm)
        assert in_the_box(seen) == [line[1:]]
        await seen.pilot.press("slash")  # a letter now
        assert in_the_box(seen) == [f"{line[1:]}/"]
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
