"""The charts: figures with unit, scale and sum, of everything or name by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mam_core.operations.bars import Bar, Dimension, Outcome
from mam_core.operations.statistics import Period, Statistics
from mam_core.records import Status
from mam_core.registry import Registry
from mam_tui.bars.panels import PANELS, Question, cost, panels
from mam_tui.screens.charts import ChartsScreen
from mam_tui.widgets.chart import columns, side_by_side, stretched, width_of
from mam_tui.widgets.detail.spans import Line
from tests.console.detail_story import HOSTILE, WORKER
from tests.console.staging import TOASTS, add
from tests.console.test_gantt_view import happens, looking
from tests.console.time_story import busy_hours
from tests.support.clock import NOON, FakeClock


def text(lines: list[Line]) -> list[str]:
    return ["".join(span.text for span in line) for line in lines]


class TestColumns:
    def test_rise_by_eighths_and_show_the_smallest(self) -> None:
        assert text(columns([0, 1, 8, 12, 16], 5, 2, 16)) == ["   ▄█", " ▁███"]
        assert text(columns([0, 1, 8, 16], 4, 2, 16, ascii_only=True)) == ["   #", " .##"]

    def test_have_a_shade_for_what_is_higher(self) -> None:
        assert text(columns([4, 0], 2, 2, 8, behind=[8, 8])) == ["░░", "█░"]

    def test_fill_any_width(self) -> None:
        assert stretched([1, 2, 3, 4], 2) == [2, 4]
        assert stretched([1, 2], 4) == [1, 1, 2, 2]
        assert text(columns([0] * 60, 7, 1, 0)) == [" " * 7]


def ended(number: int, outcome: Outcome = Outcome.COMPLETED, **more: Any) -> Bar:
    base = Bar(f"job{number}", 1, "codex", "tmux:a", "", "host", NOON - 200, NOON - 60, outcome)
    return base._replace(**more)


@pytest.mark.parametrize("by", [None, Dimension.AGENT, Dimension.GROUP])
@pytest.mark.parametrize("width", [10, 58, 66])
@pytest.mark.parametrize("plain", [False, True])
def test_every_panel_is_as_wide_and_as_high_as_it_may_be(
    by: Dimension | None, width: int, plain: bool
) -> None:
    bars = [ended(n, agent=f"agent-{n}", tokens=1500, cost=0.21) for n in range(12)]
    bars += [ended(99, Outcome.ERROR, agent=HOSTILE, queued_at=NOON - 400)]
    made = panels(Statistics(bars), Question(Period.HOUR, NOON, by, width, 5, plain))
    assert len(made) == PANELS
    assert {len(panel) for panel in made} == {8}
    whole = "\n".join(line for panel in made for line in text(panel))
    assert "\x1b" not in whole
    assert "\x07" not in whole
    if width > 20:
        assert all(width_of(line) <= width for panel in made for line in panel)
        assert "13 ended, 13.0 an hour" in whole
        assert "1 of 13 failed" in whole
        assert "18.0k tokens" in whole
        assert "$2.52" in whole
        assert "median 3m20" in whole
    if plain:
        assert whole.isascii() or by is not None or width < 20
    if by is Dimension.AGENT and width > 20:
        assert "and 8 more" in whole
    assert side_by_side(made, 2, width)


def test_small_sums_are_told() -> None:
    assert [cost(0.0), cost(0.004), cost(0.42)] == ["$0.00", "<$0.01", "$0.42"]


async def test_the_last_hours_are_seen_by_everything_and_by_name(
    tmp_path: Path, registry: Registry, clock: FakeClock
) -> None:
    busy_hours(registry, clock, 0.75)
    async with looking(tmp_path, registry, clock, "6", (200, 50)) as seen:
        view = seen.view
        assert isinstance(view, ChartsScreen)
        words = ("Throughput", "Outcomes", "Waiting time", "Run time", "Tokens", "Cost")
        for word in (*words, "last hour", "✔ completed", "✖ error", "an hour", "median", "p90"):
            assert word in seen.text(), word
        await seen.press("b")
        assert "by agent" in seen.text()
        assert "claude-code" in seen.text()
        await seen.press("b", "b", "z")
        assert "tmux:alpha" in seen.text()
        assert "last day by session" in seen.text()
        await seen.press("b", "z", "z")
        await seen.pilot.resize_terminal(60, 20)
        await seen.pilot.pause()
        assert "Throughput" in seen.text()
        assert "Cost" not in seen.text()
        await seen.press("G")
        assert "Cost" in seen.text()
        assert "an attempt" in seen.text()
        page = view.page
        page.lines_drawn = 0
        clock.pass_time(1)
        view._tick()
        await seen.pilot.pause()
        assert page.lines_drawn == 0  # a second alone changes nothing
        await seen.press("a")
        assert any("no single job" in words for words in TOASTS[seen.app._notifications])
        clock.pass_time(7200)
        view._tick()
        await seen.pilot.pause()
        assert "nothing ended in the last hour" in seen.text()
        await seen.pilot.resize_terminal(20, 5)
        await seen.press("escape")
        assert seen.app.screen is seen.app.board


async def test_one_drawing_a_second_and_nothing_while_it_is_hidden(
    tmp_path: Path, registry: Registry, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws: list[float] = []
    whole = ChartsScreen.draw

    def draw(view: ChartsScreen) -> None:
        draws.append(view.now)
        whole(view)

    monkeypatch.setattr(ChartsScreen, "draw", draw)

    def end_one() -> None:
        job_id = add(registry)
        assert registry.claim("tmux:c", lease=WORKER) is not None
        clock.pass_time(2)
        registry.finish(job_id, Status.COMPLETED, attempt=1)

    end_one()
    async with looking(tmp_path, registry, clock, "6") as seen:
        await seen.at_rest()
        view, feed = seen.view, seen.app.desk.bars
        assert isinstance(view, ChartsScreen)
        assert view._timer is not None
        view._timer.pause()  # its seconds are ours now
        before = len(draws)
        for _ in range(5):
            end_one()
            await happens(seen, registry)
        await seen.until(lambda: not feed.is_busy or feed._found, "their logs were read")
        assert len(draws) == before
        view._tick()
        assert len(draws) == before + 1

        def is_read() -> bool:
            view._tick()
            return not feed.is_busy

        await seen.until(is_read, "the logs that were not read yet")
        await seen.press("escape")
        read, lines, before = feed.logs_read, view.page.lines_drawn, len(draws)
        end_one()
        await happens(seen, registry)
        view._tick()
        await seen.pilot.pause(0.6)  # longer than a change waits before its log is read
        assert (feed.logs_read, view.page.lines_drawn, len(draws)) == (read, lines, before)
        await seen.press("6")
        await seen.until(lambda: "7 ended" in seen.text(), "what ended meanwhile is there")
