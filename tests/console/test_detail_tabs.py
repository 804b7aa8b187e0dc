"""What each tab of the detail panel shows: of a job that was tried twice, and of a hostile one."""

from __future__ import annotations

import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from mam_core.audit import AuditEvent
from mam_core.records import Reason
from mam_core.registry import Registry
from mam_core.summaries import Summary
from mam_tui.desk import Desk
from mam_tui.widgets.detail.line_view import LineView
from mam_tui.widgets.detail.page import Page
from mam_tui.widgets.detail.pane import PaneSource, Sight, no_source
from mam_tui.widgets.detail.panel import DetailPanel
from tests.console.detail_story import (
    hostile,
    note,
    output_of,
    two_attempts,
)
from tests.support.clock import FakeClock
from tests.support.jobs import add
from tests.support.patience import until


class Alone(App[None]):
    """The panel, and nothing else."""

    def __init__(self, desk: Desk, tab: str = "", pane: PaneSource = no_source) -> None:
        super().__init__()
        self.panel = DetailPanel(desk, tab=tab, pane=pane)

    def compose(self) -> ComposeResult:
        yield self.panel


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@asynccontextmanager
async def opened(
    desk: Desk, registry: Registry, job_id: str, tab: str = "", pane: PaneSource = no_source
) -> AsyncIterator[tuple[DetailPanel, Pilot[None]]]:
    desk.board.load([Summary.of(registry.get(job_id))])
    app = Alone(desk, tab, pane)
    async with app.run_test(size=(100, 40)) as pilot:
        app.panel.show(job_id)
        yield app.panel, pilot


def seen(view: LineView) -> str:
    return "\n".join(view.render_line(y).text.rstrip() for y in range(view.size.height)).rstrip()


async def shown(panel: DetailPanel, pilot: Pilot[None], words: str) -> str:
    await until(pilot, lambda: words in seen(panel.view))
    return seen(panel.view)


async def test_each_tab_of_a_job_that_was_tried_twice(
    desk: Desk, registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    job_id = two_attempts(registry, clock, tmp_path)
    async with opened(desk, registry, job_id) as (panel, pilot):
        timeline = await shown(panel, pilot, "attempt 2")
        lines = [line.strip() for line in timeline.splitlines()]
        assert lines[0] == "attempt 2  ▶ running  2026-06-19 09:34:40"
        # The old error stands under its own attempt, which is called earlier.
        assert "attempt 1  ✖ error  3m05  2026-06-19 09:30:30  (earlier)" in lines
        assert lines.index("exit: the agent left with 3") > lines.index("after attempt 1")
        panel.switch("tail")
        tail = await shown(panel, pilot, "progress")
        assert "09:35:01 #2 progress     half of the sky  progress=50 tool=Bash" in tail
        panel.switch("record")
        await shown(panel, pilot, "claude-code")
        panel.view.action_last()
        record = await shown(panel, pilot, "prompt  ")
        assert "prompt  38 characters\nCount the stars\n\n  and write them down" in record
        panel.switch("artifacts")
        artifacts = await shown(panel, pilot, "stars.txt")
        assert "stars.txt   ✔ is there              5 B, 3s ago" in artifacts
        assert "missing.md  ✖ is missing" in artifacts
        assert "✖ the validate command failed  for attempt 1 (earlier) at 09:33:35" in artifacts
        panel.switch("output")
        assert await shown(panel, pilot, "second try") == "second try\ngreen\nstill green\nno end"
        panel.switch("why")
        why = await shown(panel, pilot, "running as attempt 2")
        assert "how it came to this" in why
        panel.switch("diff")
        await shown(panel, pilot, "its folder is in no git")
        panel.switch("pane")
        await shown(panel, pilot, "there is no screen to look at")


async def test_nothing_that_a_stranger_wrote_reaches_the_screen_as_it_is(
    desk: Desk, registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    job_id = hostile(registry, clock, tmp_path)

    def screen(_: Registry, __: str) -> Sight:
        return Sight(("\x1b[31mred\x1b]0;t\x07\x1b[2J", "a\x07\x9bb [red]x[/]"))

    async with opened(desk, registry, job_id, pane=screen) as (panel, pilot):
        for name in panel.tabs:
            panel.switch(name)
            await until(pilot, lambda: bool(seen(panel.view)))
            await pilot.pause()
            for strip in panel.app.screen._compositor.render_strips():
                for segment in strip:
                    assert not segment.control
                    bad = [c for c in segment.text if ord(c) < 32 or 127 <= ord(c) < 160]
                    assert not bad, (name, segment.text)
                    assert "\u202e" not in segment.text
                    assert "\u200b" not in segment.text
                    assert segment.style is None or not segment.style.link
            if name in ("timeline", "tail", "output", "record", "pane"):
                await until(pilot, lambda: "[red]x[/]" in seen(panel.view))


async def test_a_prompt_of_a_megabyte_is_broken_only_where_it_is_seen(
    desk: Desk, registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    prompt = "\n".join(f"line {number} " + "x" * 90 for number in range(10_000)) + "\nthe end"
    job_id = add(registry, prompt)
    async with opened(desk, registry, job_id, "record") as (panel, pilot):
        page = panel.view
        assert isinstance(page, Page)
        await shown(panel, pilot, "shell")
        assert len(page._broken) < 100
        page.focus()
        await pilot.press("end")
        await until(pilot, lambda: page.is_measured)
        await shown(panel, pilot, "the end")
        assert len(page._broken) <= 256
        await pilot.resize_terminal(60, 20)
        await pilot.press("end")
        await shown(panel, pilot, "the end")


async def test_output_is_followed_until_one_scrolls_up_and_attempts_can_be_chosen(
    desk: Desk, registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    job_id = two_attempts(registry, clock, tmp_path)
    log = output_of(registry, job_id, 2)
    log.write_bytes(b"".join(b"line %d\n" % number for number in range(200)))
    async with opened(desk, registry, job_id, "output") as (panel, pilot):
        await shown(panel, pilot, "line 199")
        panel.view.focus()
        with log.open("ab") as file:
            file.write(b"half of a l")
        await shown(panel, pilot, "half of a l")
        with log.open("ab") as file:
            file.write(b"ine\nnew\n")
        text = await shown(panel, pilot, "new")
        assert text.endswith("line 199\nhalf of a line\nnew")
        await pilot.press("pageup")
        before = seen(panel.view)
        with log.open("ab") as file:
            file.write(b"newest\n")
        await until(pilot, lambda: "end follows again" in panel.open_tab.note)
        await until(pilot, lambda: panel.view.rows == 203)
        assert seen(panel.view) == before
        await pilot.press("end")
        await shown(panel, pilot, "newest")
        await pilot.press("less_than_sign")
        assert await shown(panel, pilot, "first try") == "first try"
        assert "of attempt 1 out of 1, 2" in panel.open_tab.note
        await pilot.press("greater_than_sign")
        await shown(panel, pilot, "newest")


async def test_a_diff_in_its_colours(
    desk: Desk, registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()

    def git(*words: str) -> str:
        asked = ["git", "-c", "user.name=ann", "-c", "user.email=a@example.org", *words]
        done = subprocess.run(asked, cwd=work, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q")
    (work / "sky.txt").write_text("one star\n")
    git("add", ".")
    git("commit", "-qm", "begin")
    job_id = add(registry, agent_session="tmux:alpha", workdir=str(work))
    assert registry.claim("tmux:alpha") is not None
    start = {"commit": git("rev-parse", "HEAD")}
    note(registry, job_id, AuditEvent.ATTEMPT_STARTED, attempt=1, workdir=str(work), git=start)
    (work / "sky.txt").write_text("two \x1b[31mstars\n")
    async with opened(desk, registry, job_id, "diff") as (panel, pilot):
        text = await shown(panel, pilot, "+two")
        assert "-one star\n+two stars" in text
        assert "of attempt 1 so far, 1 file +1 -1" in panel.open_tab.note
        row = text.splitlines().index("+two stars")
        added = panel.view.render_line(row)
        removed = panel.view.render_line(row - 1)
        assert next(iter(added)).style != next(iter(removed)).style


async def test_a_pane_draws_only_the_lines_that_changed(
    desk: Desk, registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    job_id = two_attempts(registry, clock, tmp_path)
    screen = [f"\x1b[3{number % 8}mline {number}" for number in range(30)]

    async with opened(desk, registry, job_id, "pane", lambda _, __: Sight(tuple(screen))) as (
        panel,
        pilot,
    ):
        await shown(panel, pilot, "line 29")
        await pilot.pause()
        drawn = panel.view.lines_drawn
        screen[7] = "\x1b[37mother"
        await until(pilot, lambda: panel.view.lines_drawn > drawn)
        assert panel.view.lines_drawn == drawn + 1
        assert seen(panel.view).splitlines()[7] == "other"


async def test_a_job_that_was_given_back_shows_no_old_end_as_its_state(
    desk: Desk, registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    job_id = two_attempts(registry, clock, tmp_path)
    registry.requeue(job_id, Reason.LOST, attempt=2, detail="its host is gone")
    async with opened(desk, registry, job_id) as (panel, pilot):
        text = await shown(panel, pilot, "given back")
        headings = [line for line in text.splitlines() if line.startswith("attempt")]
        assert all(line.endswith("(earlier)") for line in headings)
        panel.switch("output")
        await shown(panel, pilot, "no end")
        assert panel._look is None, "nothing runs: nothing is looked at again"
