"""The detail panel on the board and by itself: where it stands, what it costs, what it drops."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from mam_core.events.feed import EventHeard, Origin
from mam_core.operations.told import told_events
from mam_core.registry import Registry
from mam_tui.app import Console
from mam_tui.desk import Desk
from mam_tui.folding import Folded
from mam_tui.screens.board import BoardScreen
from mam_tui.screens.job import JobScreen
from mam_tui.widgets.detail.log import Log
from mam_tui.widgets.detail.panel import PACE_SEC
from mam_tui.widgets.detail.spans import Span
from mam_tui.widgets.detail.tab import Question
from tests.console.detail_story import quiet_bridge, two_attempts
from tests.console.test_detail_tabs import opened, seen, shown
from tests.support.clock import FakeClock
from tests.support.jobs import add
from tests.support.patience import until


def heard(registry: Registry, job_id: str, number: int, detail: str) -> EventHeard:
    """An event as the feed would tell it."""
    event = told_events(registry, job_id, 1)[0]._replace(seq=number, detail=detail)
    return EventHeard(event, {}, Origin.BROKER, 0.0, 0)


class TestOnTheBoard:
    async def test_it_stands_where_there_is_room_and_keys_reach_it(
        self, desk: Desk, registry: Registry, clock: FakeClock, tmp_path: Path
    ) -> None:
        job_id = two_attempts(registry, clock, tmp_path)
        other = add(registry)
        app = Console(desk, bridge=quiet_bridge(desk))
        async with app.run_test(size=(200, 50)) as pilot:
            await until(pilot, lambda: len(desk.board) == 2)
            board = app.board
            board.table.go_to_job(job_id)
            await shown(board.panel, pilot, "attempt 2")
            assert board.panel.region.x >= 100, "beside"
            await pilot.press("right_square_bracket")
            assert board.panel.open_tab.name == "tail"
            await pilot.press("left_square_bracket", "tab")
            assert board.panel.view.has_focus
            await pilot.press("escape")
            assert board.table.has_focus
            await pilot.press("d")
            assert not board.panel.display
            await pilot.press("d")
            await pilot.resize_terminal(120, 36)
            assert board.panel.region.y > 10, "below"
            await pilot.resize_terminal(80, 24)
            assert not board.panel.display
            await self._on_the_whole_screen(app, board, pilot, job_id, other)

    async def _on_the_whole_screen(
        self, app: Console, board: BoardScreen, pilot: Pilot[Any], job_id: str, other: str
    ) -> None:
        before = board.panel.refreshes
        await pilot.press("enter")
        job = app.screen
        assert isinstance(job, JobScreen)
        await shown(job.panel, pilot, "attempt 2")
        await pilot.press("right_square_bracket", "right_square_bracket", "right_square_bracket")
        await shown(job.panel, pilot, "claude-code")
        await pilot.press("J")
        assert job.panel.job_id == other
        await shown(job.panel, pilot, other)
        await pilot.press("escape")
        assert app.screen is board
        assert board.desk.board.cursor == other
        assert board.panel.open_tab.name == "record"
        assert board.panel.refreshes == before, "it was hidden all the time"

    async def test_an_empty_board_has_no_panel(self, desk: Desk) -> None:
        app = Console(desk, bridge=quiet_bridge(desk))
        async with app.run_test(size=(200, 50)) as pilot:
            await until(pilot, lambda: not app.standing().loading)
            assert not app.board.panel.display
            assert app.board.panel.refreshes == 0


class TestCost:
    async def test_many_changes_are_few_refreshes_and_none_while_it_is_hidden(
        self, desk: Desk, registry: Registry, clock: FakeClock, tmp_path: Path
    ) -> None:
        job_id = two_attempts(registry, clock, tmp_path)
        async with opened(desk, registry, job_id) as (panel, pilot):
            await shown(panel, pilot, "attempt 2")
            began, before = time.monotonic(), panel.refreshes
            for _ in range(60):
                panel.changed()
                await pilot.pause(0.01)
            # After an answer that took long the next question waits longer, too.
            await until(pilot, lambda: panel.refreshes > before)
            most = (time.monotonic() - began) / PACE_SEC + 2
            assert panel.refreshes - before <= most
            panel.display = False
            await pilot.pause(PACE_SEC)
            hidden = panel.refreshes
            for _ in range(20):
                panel.changed()
                panel.hear([heard(registry, job_id, 9, "x")])
                await pilot.pause(0.01)
            assert panel.refreshes == hidden
            panel.display = True
            await until(pilot, lambda: panel.refreshes > hidden)

    async def test_while_the_cursor_runs_no_job_is_asked_about(
        self, desk: Desk, registry: Registry
    ) -> None:
        jobs = [add(registry, f"job {number}") for number in range(10)]
        async with opened(desk, registry, jobs[0], "record") as (panel, pilot):
            await shown(panel, pilot, jobs[0])
            before = panel.refreshes
            for job_id in jobs[1:]:
                panel.show(job_id)
            assert not seen(panel.view), "nothing of the job before is left"
            await shown(panel, pilot, jobs[-1])
            assert panel.refreshes == before + 1

    async def test_an_answer_that_comes_too_late_is_dropped(
        self, desk: Desk, registry: Registry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slow, quick = add(registry, "slow"), add(registry, "quick")
        gate, began = threading.Event(), threading.Event()
        async with opened(desk, registry, quick, "record") as (panel, pilot):
            await shown(panel, pilot, quick)
            ask = panel.open_tab.question

            def question() -> Question:
                real = ask()
                if panel.job_id != slow:
                    return real

                def wait(registry: Registry) -> Any:
                    began.set()
                    gate.wait(20)
                    return real(registry)

                return wait

            monkeypatch.setattr(panel.open_tab, "question", question)
            panel.show(slow)
            await until(pilot, began.is_set)
            await shown(panel, pilot, "reading …")
            panel.show(quick)
            await shown(panel, pilot, quick)
            gate.set()
            await until(pilot, lambda: panel._asking._running == 0)
            await pilot.pause(PACE_SEC)
            assert quick in seen(panel.view)

    async def test_what_is_gone_is_shown_as_it_was_and_says_so(
        self, desk: Desk, registry: Registry, tmp_path: Path
    ) -> None:
        job_id = add(registry)
        async with opened(desk, registry, job_id, "record") as (panel, pilot):
            await shown(panel, pilot, job_id)
            (tmp_path / "jobs" / f"{job_id}.json").unlink()
            panel.changed()
            await shown(panel, pilot, "its record is gone")
            panel.show(None)
            await shown(panel, pilot, "there is no job here")


class TestTail:
    async def test_it_follows_until_one_scrolls_up_and_again_from_the_end(
        self, desk: Desk, registry: Registry, clock: FakeClock, tmp_path: Path
    ) -> None:
        job_id = two_attempts(registry, clock, tmp_path)
        async with opened(desk, registry, job_id, "tail") as (panel, pilot):
            log = panel.view
            assert isinstance(log, Log)
            await shown(panel, pilot, "half of the sky")
            panel.hear([heard(registry, job_id, 6 + n, f"step {n}") for n in range(100)])
            panel.hear([heard(registry, job_id, 5, "told already")])
            text = await shown(panel, pilot, "step 99")
            assert "told already" not in text
            log.focus()
            await pilot.press("pageup")
            before, drawn = seen(log), log.lines_drawn
            panel.hear([heard(registry, job_id, 200, "later")])
            await until(pilot, lambda: log.below == 1)
            assert seen(log) == before
            assert log.lines_drawn - drawn <= 2 * log.size.height, "only what was looked at here"
            await pilot.press("end")
            await shown(panel, pilot, "later")
            panel.hear([heard(registry, job_id, 201, "latest")])
            await shown(panel, pilot, "latest")

    async def test_events_of_other_jobs_are_not_shown(
        self, desk: Desk, registry: Registry, clock: FakeClock, tmp_path: Path
    ) -> None:
        job_id = two_attempts(registry, clock, tmp_path)
        stranger = heard(registry, job_id, 50, "a stranger")
        stranger = stranger._replace(event=stranger.event._replace(job_id="other001"))
        async with opened(desk, registry, job_id, "tail") as (panel, pilot):
            await shown(panel, pilot, "half of the sky")
            mine = heard(registry, job_id, 51, "mine")
            panel.take(Folded(None, {}, {}, [stranger, mine], []))
            assert "a stranger" not in await shown(panel, pilot, "mine")


class Ring(App[None]):
    """A log of a few lines."""

    def compose(self) -> ComposeResult:
        yield Log(lambda item: (Span(f"line {item}"),), ring=100)


async def test_a_ring_lets_go_and_what_is_read_stays_where_it_is() -> None:
    async with Ring().run_test(size=(40, 10)) as pilot:
        log = pilot.app.query_one(Log)
        log.extend(range(50))
        await pilot.pause()
        assert seen(log).splitlines()[-1] == "line 49"
        log.go_to(30)
        assert not log.following
        log.extend(range(50, 610))
        await pilot.pause()
        assert log.rows == 100
        assert log.let_go == 510
        log.go_to(40)
        assert seen(log).splitlines()[0] == "line 550"
        log.extend(range(610, 1110))
        await pilot.pause()
        log.go_to(550)
        reading = seen(log)
        log.extend([1110])
        assert log.rows == 100
        assert seen(log) == reading
        log.action_last()
        assert seen(log).splitlines()[-1] == "line 1110"
        log.extend(["whole"], instead_of_last=True)
        assert seen(log).splitlines()[-1] == "line whole"
