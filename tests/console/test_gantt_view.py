"""The Gantt view: attempts as bars in lanes, drawn finely and seldom, of now and of the past."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from mam_core.operations.bars import Bar, Outcome, Wait
from mam_core.operations.lanes import Lanes
from mam_core.operations.listing import listing, query
from mam_core.records import Status
from mam_core.registry import Registry
from mam_tui.app import Console
from mam_tui.arrivals import Loaded
from mam_tui.bars.cells import Scene, cells_of
from mam_tui.bars.window import TimeWindow
from mam_tui.screens.gantt import GanttScreen
from mam_tui.screens.job import JobScreen
from mam_tui.screens.timed import TimedView
from mam_tui.widgets.gantt_chart import GanttChart
from mam_tui.widgets.time_axis import TimeAxis
from tests.console.detail_story import HOSTILE, WORKER, desk_on
from tests.console.picture_story import StillBridge
from tests.console.staging import add, text_of
from tests.console.time_story import busy_hours
from tests.support.clock import NOON, FakeClock
from tests.support.patience import PATIENCE_SEC


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


class Seen(NamedTuple):
    """A console on a view of time."""

    app: Console
    pilot: Pilot[None]

    @property
    def view(self) -> TimedView:
        found = self.app.views.current
        assert isinstance(found, TimedView)
        return found

    @property
    def chart(self) -> GanttChart:
        assert isinstance(self.view, GanttScreen)
        return self.view.chart

    def text(self) -> str:
        return text_of(self.app)

    def is_on(self, kind: type) -> bool:
        return isinstance(self.app.screen, kind)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def until(self, is_so: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SEC
        while not is_so():
            assert time.monotonic() < deadline, f"not in time: {what}\n{self.text()}"
            await self.pilot.pause(0.02)

    async def at_rest(self) -> None:
        """Everything was read, and what was read is shown."""
        feed = self.app.desk.bars
        await self.until(lambda: not feed.is_busy, "all logs are read")
        self.view._tick()
        await self.pilot.pause()


@asynccontextmanager
async def looking(
    folder: Path,
    registry: Registry,
    clock: FakeClock,
    key: str = "5",
    size: tuple[int, int] = (120, 30),
    *,
    ascii_only: bool = False,
) -> AsyncIterator[Seen]:
    """At what stands in the registry now; what changes is told by `happens`."""
    desk = desk_on(folder, clock)

    def bridge(ring: Callable[[], None]) -> StillBridge:
        made = StillBridge(desk.registry_path, desk.config, ring, with_duties=False)
        made.told = (Loaded(listing(registry, query())),)
        return made

    app = Console(desk, ascii_only=ascii_only, bridge=bridge)
    try:
        async with app.run_test(size=size) as pilot:
            await pilot.press(key)
            seen = Seen(app, pilot)
            await seen.until(lambda: desk.bars.is_loaded, "the bars are there")
            await seen.at_rest()
            yield seen
    finally:
        desk.panes.close()


async def happens(seen: Seen, registry: Registry) -> None:
    """The console hears how everything stands now."""
    bridge = seen.app.bridge
    assert isinstance(bridge, StillBridge)
    bridge.tell(Loaded(listing(registry, query())))
    await seen.pilot.pause()


def bar(begin: float, end: float | None, outcome: Outcome = Outcome.COMPLETED, **more: Any) -> Bar:
    if end is None:
        outcome = Outcome.RUNNING
    base = Bar("job1", 1, "codex", "tmux:a", "", "host", begin, end, outcome)
    return base._replace(**more)


def drawn(*bars: Bar, now: float = 100.0, width: int = 10, **more: bool) -> str:
    """With ten seconds for each column."""
    scene = Scene(TimeAxis(0.0, width * 10.0, width), now, **more)
    return "".join(cell.sign for cell in cells_of(bars, scene, None)).replace("┊", " ")


class TestCells:
    def test_are_fine_to_an_eighth_of_a_column(self) -> None:
        assert drawn(bar(10, 35)) == " █✔▌      "
        assert drawn(bar(15, 40)) == " ▌█✔      "  # its first cell is turned
        assert drawn(bar(20, 50), bar(50, 70)) == "  ██✔█✔   "
        assert drawn(bar(30, 31), bar(32, 33, Outcome.ERROR)) == "   ✖      "  # what matters most
        assert drawn(bar(80, None)) == "        █▶"

    def test_show_waits_and_names_and_are_plain_where_they_must_be(self) -> None:
        waits = (Wait(20, 40),)
        assert drawn(bar(10, 60, waits=waits)) == " █▒▒█✔    "
        assert drawn(bar(10, 60, waits=waits), ascii_only=True).strip(" .") == "#==#+"
        assert "job1" in drawn(bar(0, 150), width=20)


class TestTime:
    def test_has_ticks_that_a_person_would_name(self) -> None:
        assert TimeAxis(NOON, 7200, 60).words().split() == ["09:30", "10:00", "10:30", "11:00"]
        assert TimeAxis(NOON, 60, 50).words().split()[0] == "09:30:00"
        assert TimeAxis(NOON, 7 * 86400, 60).words().split()[:4] == ["Jun", "20", "Jun", "21"]
        assert "Jun 20" in TimeAxis(NOON, 86400, 100).words()
        assert len(TimeAxis(NOON, 7200, 3).words()) == 3

    def test_follows_the_present_until_it_is_moved(self) -> None:
        window = TimeWindow()
        window.fit((NOON - 7200, NOON), NOON)
        assert window.begin < NOON - 7200
        assert window.span < 3 * 3600
        assert not window.move_on(NOON + 1)  # it moves by steps
        assert window.move_on(NOON + 600)
        window.pan(-0.25)
        assert not window.move_on(NOON + 9000)
        begin, middle = window.begin, window.begin + window.span / 4
        window.zoom(1, middle)
        assert window.begin > begin
        assert window.begin + window.span / 4 == pytest.approx(middle)
        window = TimeWindow()
        window.fit((NOON - 90 * 86400, NOON - 80 * 86400), NOON)
        assert not window.follows
        assert window.begin < NOON - 80 * 86400


class _Bare(App[None]):
    """The chart alone: it needs no desk, no registry and no clock."""

    def compose(self) -> ComposeResult:
        yield GanttChart()


async def test_the_chart_draws_any_lanes_for_any_clock() -> None:
    app = _Bare()
    async with app.run_test(size=(60, 12)) as pilot:
        chart = app.query_one(GanttChart)
        bars = [bar(NOON - 600, None, job_id="job2", session=HOSTILE), bar(NOON - 900, NOON - 700)]
        chart.show(Lanes(bars), NOON + 7)
        await pilot.pause()
        text = text_of(app)
        assert "\\x1b[31mred" in text
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "▶" in text
        assert "✔" in text
        chart.lines_drawn = 0
        chart.tick(NOON + 8)  # too little to be seen
        await pilot.pause()
        assert chart.lines_drawn == 0
        chart.tick(NOON + 25)
        await pilot.pause()
        assert 0 < chart.lines_drawn <= 2  # what runs, and nothing else
        await pilot.resize_terminal(20, 5)
        await pilot.press("j", "k", "right", "left", "h", "l", "G", "g", "pagedown")
        await pilot.resize_terminal(3, 2)
        await pilot.pause()


async def test_two_busy_hours_are_seen_and_gone_about_in(
    tmp_path: Path, registry: Registry, clock: FakeClock
) -> None:
    jobs = busy_hours(registry, clock, 0.75)
    async with looking(tmp_path, registry, clock) as seen:
        text = seen.text()
        assert "gantt" in text.split("\n")[0]
        assert "by session" in text
        assert "10:00" in text
        for name in ("tmux:alpha", "tmux:beta", "tmux:theta", "✔", "✖", "▶", "▒", "queued"):
            assert name in text, name
        chart = seen.chart
        assert len(seen.app.desk.bars.lanes) > len(jobs)  # some were tried twice
        await seen.press("g")
        first = chart.bar
        assert first is not None
        assert chart.line == 0
        await seen.press("left")
        assert chart.bar is not None
        assert chart.bar.began_at < first.began_at
        await seen.press("j", "j")
        assert chart.line == 2
        chosen = chart.bar
        assert chosen is not None
        assert f"[{chosen.job_id}"[:5] in seen.text()
        assert chosen.job_id in seen.text().split("\n")[-3]
        assert seen.app.desk.board.cursor == chosen.job_id
        await seen.press("enter")
        assert seen.is_on(JobScreen)
        await seen.press("escape")
        assert chart.bar == chosen
        await seen.press("b")
        assert "by node" in seen.text()
        await seen.press("b")
        assert "by group" in seen.text()
        assert "nightly" in seen.text()
        assert "no group" in seen.text()
        span = chart.window.span
        await seen.press("plus", "z")
        assert chart.window.span < span
        await seen.press("underscore", "Z", "h")
        assert "to now" not in seen.text()
        await seen.press("h", "h", "h", "h", "h", "h")
        assert "nothing ran in this time" in seen.text()
        await seen.press("f")
        assert chart.window.follows
        assert "to now" in seen.text()
        await seen.pilot.resize_terminal(60, 20)
        await seen.press("b")
        assert "tmux:alpha" in seen.text()
        assert "tmux:zeta" in seen.text()
        await seen.press("escape")
        assert seen.app.screen is seen.app.board
        assert chart.bar is not None
        assert seen.app.desk.board.cursor == chart.bar.job_id


async def test_nothing_is_read_or_drawn_while_it_is_hidden(
    tmp_path: Path, registry: Registry, clock: FakeClock
) -> None:
    job_id = add(registry, "Sort the imports")
    clock.pass_time(30)
    assert registry.claim("tmux:c", lease=WORKER) is not None
    clock.pass_time(300)
    async with looking(tmp_path, registry, clock) as seen:
        assert "running" in seen.text()
        assert "Sort the imports" in seen.text()
        chart, feed = seen.chart, seen.app.desk.bars
        await seen.press("escape")
        read, lines = feed.logs_read, chart.lines_drawn
        clock.pass_time(60)
        registry.finish(job_id, Status.COMPLETED, attempt=1)
        await happens(seen, registry)
        await seen.pilot.pause(1.2)
        assert (feed.logs_read, chart.lines_drawn) == (read, lines)
        await seen.press("5")
        await seen.at_rest()
        assert chart.bar is not None
        assert chart.bar.outcome is Outcome.COMPLETED
        assert "completed" in seen.text().split("\n")[-3]
        await seen.press("p")  # held: nothing moves any more
        moment = seen.view.now
        clock.pass_time(50)
        seen.view._tick()
        assert seen.view.now == moment
        assert "PAUSED" in seen.text()
        await seen.press("p")
        (Path(seen.app.desk.registry_path) / f"{job_id}.json").unlink()
        await happens(seen, registry)
        await seen.at_rest()
        await seen.until(lambda: "its record is gone" in seen.text(), "that its record is gone")
        await seen.press("enter")
        assert seen.is_on(GanttScreen)


async def test_where_nothing_ran_it_says_so(
    tmp_path: Path, registry: Registry, clock: FakeClock
) -> None:
    add(registry)
    async with looking(tmp_path, registry, clock, size=(60, 20), ascii_only=True) as seen:
        assert "nothing has run here yet" in seen.text()
        await seen.press("enter", "left", "j", "b", "plus", "f", "question_mark", "escape")
        await seen.pilot.resize_terminal(20, 5)
        assert seen.is_on(GanttScreen)
