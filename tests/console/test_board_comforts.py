"""The board's comforts: columns, ranges of marks, the mouse, and places that are found again."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.events import Key, MouseScrollDown

from mam_core.cli import console
from mam_core.cli.context import Context
from mam_core.config import load
from mam_core.operations.preferences import Preferences
from mam_core.records import Reason, Status
from mam_core.wiring import open_registry
from mam_tui import entry
from mam_tui.actions import ACTIONS, Place
from mam_tui.app import Console
from mam_tui.columns import COLUMNS, sort_key
from mam_tui.commands import Command
from mam_tui.laying import Look
from mam_tui.marking import Range
from mam_tui.model import Board, Order
from mam_tui.screens.board import BoardScreen
from mam_tui.screens.board_commands import obey
from mam_tui.screens.columns_dialog import Choice, ColumnsDialog
from mam_tui.screens.job import JobScreen
from mam_tui.screens.sessions import SessionsScreen
from mam_tui.widgets.key_bar import KeyBar
from tests.console.board_story import Told, told
from tests.console.staging import add, opened, text_of
from tests.console.story import NOW, summary

_JOBS = [summary(number) for number in range(60)]


@pytest.fixture(autouse=True)
def _no_place_of_the_persons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def ids(*numbers: int) -> list[str]:
    return [f"job{number:04}" for number in numbers]


class TestColumns:
    async def test_are_chosen_moved_and_kept(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            await seen.press("C")
            assert seen.is_on(ColumnsDialog)
            usual = list(seen.table.headings)
            assert usual[:3] == ["state", "id", "agent"]
            await seen.press("j", "j", "space", "k", "K", "enter")  # no agent, the id first
            assert list(seen.table.headings)[:2] == ["id", "state"]
            assert "agent" not in seen.table.headings
            assert seen.app.choices.now.columns[:2] == ("id", "state")
            await seen.press("C", "space", "escape")  # left as it was
            assert next(iter(seen.table.headings)) == "id"
            await seen.press("C", "a", "enter")
            assert list(seen.table.headings) == usual
            assert seen.app.choices.now.columns == ()

    async def test_by_the_command_line_and_back(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS, config='[console]\ncolumns = ["id", "age"]\n') as seen:
            assert list(seen.table.headings) == ["id", "age"]
            obey(seen.app.board, Command("columns", "state,node,prompt"))
            assert list(seen.table.headings) == ["state", "node", "prompt"]
            obey(seen.app.board, Command("columns", "auto"))
            assert list(seen.table.headings) == ["id", "age"]  # as the file says

    async def test_the_node_is_shown_where_there_is_more_than_one(self, tmp_path: Path) -> None:
        running = [summary(n, Status.RUNNING, node="oak") for n in range(3)]
        async with told(tmp_path, running, size=(160, 24)) as seen:
            assert "node" not in seen.table.headings
            await seen.happens(summary(9, Status.RUNNING, node="elm"))
            assert "node" in seen.table.headings
            assert "oak" in seen.text()
            assert "elm" in seen.text()

    async def test_fit_a_dialog_that_is_less_high_than_they_are_many(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS, size=(60, 14)) as seen:
            await seen.press("C", "G")
            await seen.pilot.pause()
            assert "prompt" in seen.text()
            assert "esc leaves" in seen.text()
            await seen.press("g")
            await seen.pilot.pause()
            assert "Columns" in seen.text()

    def test_a_choice_that_is_not_made_leaves_it_to_the_width(self) -> None:
        choice = Choice(("a", "b", "c"), shown=("a", "c"), chosen=())
        assert not choice.chosen
        choice.go(1)
        choice.toggle()
        assert choice.chosen == ("a", "b", "c")
        choice.move(1)
        assert choice.chosen == ("a", "c", "b")
        choice.reset()
        assert not choice.chosen


class TestRanges:
    async def test_v_marks_as_the_cursor_goes_and_escape_drops_it(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            board = seen.app.desk.board
            await seen.press("space", "down", "v", "down", "down")  # 0 by itself, 2 to 4
            assert board.marks == set(ids(0, 2, 3, 4))
            await seen.press("up", "up", "up", "up")  # over its start, and over a mark of before
            assert board.marks == set(ids(0, 1, 2))
            await seen.press("escape")
            assert board.marks == set(ids(0))
            await seen.press("down", "down")
            assert board.marks == set(ids(0))

    async def test_v_or_space_ends_it_and_its_marks_stay(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            board = seen.app.desk.board
            await seen.press("v", "j", "v", "j", "j", "v", "j", "space", "j")
            assert board.marks == set(ids(0, 1, 3, 4))
            assert "4 marked" in seen.text()

    async def test_shift_and_arrows_are_one_too(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            board = seen.app.desk.board
            await seen.press("shift+down", "shift+down", "shift+up", "down", "down")
            assert board.marks == set(ids(0, 1))

    async def test_marks_are_of_jobs_and_not_of_lines(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            board = seen.app.desk.board
            await seen.press("v", "j", "j")
            await seen.happens(summary(1, Status.RUNNING), gone=ids(0))  # 1 moves up, 0 is gone
            await seen.press("j")
            assert board.marks == set(ids(1, 2, 3))

    @pytest.mark.parametrize("reverse", [False, True])
    def test_a_step_passes_its_own_lines_however_long_the_range_is(self, reverse: bool) -> None:
        board = Board(sort_key, Order("id", reverse))
        board.load(summary(number) for number in range(9_000))
        board.move_to(0)
        range_ = Range(board, sticky=True)
        assert len(range_.go(8_999)) == len(board.marks) == 9_000
        assert len(range_.go(8_998)) == 2
        assert len(board.marks) == 8_999
        assert board[8_999].job_id not in board.marks
        assert list(range_.go(2)) == list(range(2, 8_999))
        assert board.marks == {board[line].job_id for line in range(3)}
        range_.drop()
        assert not board.marks


class TestTheMouse:
    def test_can_be_left_to_the_terminal(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        listens: list[bool] = []
        monkeypatch.setattr(Console, "run", lambda app, mouse: listens.append(mouse))
        config = tmp_path / "off.toml"
        config.write_text("[console]\nmouse = false\n")
        path = str(tmp_path / "jobs")
        assert entry.run(path, load(), mouse=True) == entry.Left(0)
        entry.run(path, load(), mouse=False)
        entry.run(path, load(str(config)), mouse=True)
        assert listens == [True, False, False]

    async def test_a_click_selects_and_a_second_one_opens(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            await seen.pilot.click(seen.table, offset=(20, 5))
            await seen.until(lambda: seen.cursor == "job0004", "it is selected")
            assert seen.is_on(BoardScreen)
            await seen.pilot.click(seen.table, offset=(20, 7), times=2)
            await seen.until_on(JobScreen)

    async def test_a_click_on_a_heading_sorts_and_an_arrow_says_so(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            await seen.pilot.click(seen.table, offset=(16, 0))
            await seen.until_seen("JOB▲")
            assert seen.app.desk.board.order == ("id", False)
            await seen.pilot.click(seen.table, offset=(16, 0))
            await seen.until_seen("JOB▼")
            assert seen.app.desk.board.order == ("id", True)

    async def test_a_click_on_a_key_is_that_key(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            bar = seen.app.screen.query_one(KeyBar)
            line = seen.text().split("\n")[-1]
            await seen.pilot.click(bar, offset=(line.index("mark") + 1, 0))
            await seen.until(lambda: seen.app.desk.board.marks == set(ids(0)), "it is marked")

    async def test_the_wheel_scrolls_and_no_change_takes_that_back(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            for _ in range(12):
                await seen.pilot._post_mouse_events([MouseScrollDown], seen.table, button=0)
            await seen.pilot.wait_for_scheduled_animations()
            looked_at = seen.in_sight()
            assert "job0000" not in looked_at
            await seen.happens(summary(70, Status.RUNNING))  # above all others
            assert seen.in_sight() == looked_at
            assert seen.cursor == "job0000"
            await seen.press("down")  # the cursor is wanted in sight now
            assert seen.cursor in seen.in_sight()


async def _looked_away(seen: Told, away: Callable[[], object]) -> None:
    """Goes to another screen, and much happens meanwhile."""
    await seen.press("slash", "W", "enter", "O", "pagedown", "pagedown", "up", "up")
    cursor, order = seen.cursor, seen.app.desk.board.order
    below_the_top = seen.in_sight().index(cursor or "")
    away()
    await seen.pilot.pause()
    assert not seen.is_on(BoardScreen)
    await seen.happens(
        *(summary(number, Status.RUNNING) for number in range(5)),
        *(summary(number, created_at="2001-01-01T00:00:00Z") for number in range(80, 84)),
        gone=ids(7, 8),
    )
    await seen.press("escape")
    await seen.pilot.pause()
    assert seen.is_on(BoardScreen)
    assert (seen.cursor, seen.app.desk.board.order) == (cursor, order)
    assert seen.app.desk.board.filter.text == "W"
    assert seen.in_sight().index(cursor or "") == below_the_top


def _one_failed_and_one_waits(path: str) -> tuple[str, str]:
    with open_registry(path) as registry:
        failed = add(registry, "Fail")
        registry.claim("tmux:c")
        waits = add(registry, "Wait")
        time.sleep(0.01)  # the history is in the order of milliseconds
        registry.finish(failed, Status.ERROR, attempt=1, reason=Reason.EXIT)
    return failed, waits


class TestTheWayBack:
    async def test_from_a_job_everything_is_as_it_was(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            await _looked_away(seen, lambda: seen.app.simulate_key("enter"))

    async def test_from_another_view_too(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            await _looked_away(seen, lambda: seen.app.simulate_key("2"))

    async def test_who_only_looks_at_another_view_finds_the_cursor_where_it_was(
        self, tmp_path: Path
    ) -> None:
        path = str(tmp_path / "jobs")
        failed, waits = _one_failed_and_one_waits(path)
        async with opened(path) as seen:
            await seen.until(lambda: seen.desk.needing.has_begun, "needs are known")
            assert seen.desk.board.cursor == waits
            for key, words in (("4", "retries used up"), ("7", "history 2"), ("5", "Fail")):
                await seen.press(key)
                await seen.until_seen(failed, words)
                await seen.press("1")
                await seen.until_on(BoardScreen)
                assert seen.desk.board.cursor == waits, f"view {key}"

    async def test_who_goes_to_a_job_of_the_history_finds_the_cursor_on_it(
        self, tmp_path: Path
    ) -> None:
        """At once, also where keys come faster than the screen follows."""
        path = str(tmp_path / "jobs")
        failed, waits = _one_failed_and_one_waits(path)
        async with opened(path) as seen:
            assert seen.desk.board.cursor == waits
            await seen.press("7")
            await seen.until_seen(failed, "history 2")
            await seen.press("1")
            await seen.until_seen("mam board", "NO BROKER")  # nothing settles it later
            for key in "7jk1":
                seen.app.post_message(Key(key, key))
            await seen.until_seen(f"{failed}  ✖ error")  # in the panel
            assert seen.desk.board.cursor == failed

    async def test_minus_goes_to_the_view_before(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            await seen.press("2", "minus")
            assert seen.is_on(BoardScreen)
            await seen.press("minus")
            assert seen.is_on(SessionsScreen)
            await seen.press("escape", "minus")
            assert seen.is_on(SessionsScreen)


class TestTheFirstRun:
    async def test_one_key_leaves_for_the_demonstration(self, tmp_path: Path) -> None:
        async with told(tmp_path, kept=Preferences()) as seen:
            assert "D  shows how it looks" in seen.text()
            # Not by the pilot, which would wait half a minute for an answer of what has ended.
            seen.app.post_message(Key("D", "D"))
            await seen.until(lambda: not seen.app.is_running, "the console is left")
            assert seen.app.desk.then == "demo"

    def test_the_demonstration_takes_the_place_of_the_console(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        became: list[list[str]] = []
        wanted = argparse.Namespace(view=None, filter="", read_only=False, no_mouse=False)
        monkeypatch.setattr(console, "check_place", lambda: None)
        monkeypatch.setattr(entry, "run", lambda *_, **__: entry.Left(0, "demo"))
        monkeypatch.setattr(os, "execv", lambda _, words: became.append(words))
        console.run(wanted, Context())
        assert became[0][1:] == ["-E", "-P", "-m", "mam_core", "demo"]

    async def test_where_there_are_jobs_it_only_says_how(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            await seen.press("D")
            assert seen.app.desk.then == ""
            assert seen.app.is_running


class TestCopies:
    async def test_of_line_path_and_command(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            await seen.press("space", "space", "Y")
            lines = seen.app.clipboard.split("\n")
            assert [line.split("\t")[1] for line in lines] == ids(0, 1)
            seen.app.board.action_act("copy-path")
            paths = seen.app.clipboard.split("\n")
            assert paths[1] == str(tmp_path / "jobs" / "job0001.json")
            seen.app.board.action_act("copy-command")
            first = seen.app.clipboard.split("\n")[0]
            assert first == f"mam get job0000 --registry-dir {tmp_path}/jobs"


class TestCommandsElsewhere:
    async def test_the_line_is_in_every_view_and_says_what_is_not_for_it(
        self, tmp_path: Path
    ) -> None:
        async with told(tmp_path, _JOBS) as seen:
            await seen.press("2", "colon", *"read", "enter")
            await seen.pilot.pause()
            assert seen.app.desk.read_only
            assert seen.is_on(SessionsScreen)
            await seen.press("colon", *"edit", "enter")
            await seen.pilot.pause()
            assert "edit cannot be done in this view" in seen.told()


class TestTimeLeft:
    """I7: elapsed, remaining and idle time of what runs, by a clock that stands still here."""

    JOBS = (
        summary(1, Status.RUNNING, timeout_sec=300.0),
        summary(2, Status.RUNNING, timeout_sec=61.0),
        summary(3, Status.RUNNING, timeout_sec=7200.0),
        summary(4, Status.RUNNING, timeout_sec=30.0),  # late: its worker is at it
        summary(5, Status.PENDING, timeout_sec=300.0),
        summary(6, Status.COMPLETED, timeout_sec=300.0),
    )

    async def test_until_its_timeout_is_shown_of_a_job_that_runs(self, tmp_path: Path) -> None:
        async with told(tmp_path, self.JOBS, size=(110, 24)) as seen:
            assert {"run", "left", "idle"} <= set(seen.table.headings)
            shown = {}
            for line in range(len(self.JOBS)):
                row = seen.table.row_at(line)
                shown[row.job_id] = COLUMNS["left"].text(row, Look(NOW))
            assert list(shown.values()).count("") == 2
            assert shown["job0001"] == "4m00"
            assert shown["job0002"] == "1s"
            assert shown["job0003"] == "1h59"
            assert shown["job0004"] == "0s"
            assert "4m00" in text_of(seen.app)

    async def test_whoever_has_least_of_it_comes_first(self, tmp_path: Path) -> None:
        async with told(tmp_path, self.JOBS, size=(110, 24)) as seen:
            await seen.press("colon", *"sort left", "enter")
            ids = [seen.table.row_at(line).job_id for line in range(4)]
            assert ids == ["job0004", "job0002", "job0001", "job0003"]

    async def test_where_there_is_little_room_it_goes_before_what_says_more(
        self, tmp_path: Path
    ) -> None:
        async with told(tmp_path, self.JOBS, size=(80, 24)) as seen:
            assert "left" not in seen.table.headings
            assert {"state", "id", "age", "run", "prompt"} <= set(seen.table.headings)


class TestSorting:
    async def test_a_capital_letter_sorts_and_again_turns_it_round(self, tmp_path: Path) -> None:
        async with told(tmp_path, _JOBS) as seen:
            board = seen.app.desk.board
            for key, name in (("O", "age"), ("U", "run"), ("I", "idle"), ("T", "state")):
                await seen.press(key)
                assert board.order == (name, False)
                await seen.press(key)
                assert board.order == (name, True)


async def test_a_session_is_asked_for_as_the_job_under_the_cursor_needs_it(tmp_path: Path) -> None:
    path = str(tmp_path / "jobs")
    with open_registry(path) as registry:
        add(registry)
    async with opened(path) as seen:
        await seen.until(lambda: seen.desk.board.row is not None, "the job is on the board")
        await seen.press("s")
        await seen.until_seen("$ mam spawn --agent-session tmux:c --agent codex")


async def test_what_belongs_to_another_view_is_refused_by_a_sentence(tmp_path: Path) -> None:
    """`:drain` on the board closed the console."""
    path = str(tmp_path / "jobs")
    with open_registry(path) as registry:
        add(registry)
    elsewhere = {Place.SESSIONS, Place.FLEET, Place.NODES, Place.GROUPS, Place.GANTT, Place.GRAPH}
    async with opened(path) as seen:
        for name, action in ACTIONS.items():
            if action.place in elsewhere:
                seen.app.act(name)
                await seen.until_told(f"{name} cannot be done in this view")
