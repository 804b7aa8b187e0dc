"""The Gantt view: what ran when, in which session, on which node, for which group."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from mam_core.operations.bars import Bar, Dimension
from mam_core.operations.lanes import LanesThen
from mam_tui.actions import ACTIONS, Place, key_of, refusal
from mam_tui.moments import day_and_time, span
from mam_tui.screens.on_a_job import TO_ITS_AGENT, OnAJob
from mam_tui.screens.timed import TimedView
from mam_tui.screens.view import bindings
from mam_tui.widgets.bar_detail import BarDetail, Told
from mam_tui.widgets.gantt_chart import GanttChart
from mam_tui.widgets.key_bar import KeyBar, key_name
from mam_tui.widgets.status_bar import StatusBar

if TYPE_CHECKING:
    from mam_tui.travel.step import Step

_LANES = (Dimension.SESSION, Dimension.NODE, Dimension.GROUP)
_EMPTY = """\
nothing has run here yet

an attempt of a job is a bar, from its claim to its end
mam spawn --agent-session tmux:NAME --agent AGENT  starts somebody who claims jobs"""


class GanttScreen(OnAJob, TimedView):
    """Lanes, the bar under the cursor in words, keys."""

    DEFAULT_CSS = """
    GanttScreen.-empty GanttChart, GanttScreen.-empty BarDetail { display: none; }
    """
    NAME = "gantt"
    PLACES = (Place.GANTT, Place.EVERYWHERE)
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(PLACES, ("open", "export")),
        Binding("equals_sign,z", "act('zoom-in')", ACTIONS["zoom-in"].words, show=False),
        Binding("Z", "act('zoom-out')", ACTIONS["zoom-out"].words, show=False),
    ]

    def compose(self) -> ComposeResult:
        yield StatusBar(ascii_only=self._ascii)
        yield GanttChart(ascii_only=self._ascii)
        yield Static("reading the registry …", classes="empty", markup=False)
        yield BarDetail(ascii_only=self._ascii)
        yield KeyBar()

    @property
    def chart(self) -> GanttChart:
        return self.query_one(GanttChart)

    def on_mount(self) -> None:
        self._has_fitted = self._has_said_empty = False
        self.add_class("-empty")
        self.chart.focus()

    def on_screen_suspend(self) -> None:
        board = self.console.board
        if board.is_mounted and self.app.is_running:
            board.table.moved()
            board.settle()

    # -- what is seen --------------------------------------------------------------------------

    def draw(self) -> None:
        lanes, chart = self.feed.lanes, self.chart
        if self.desk.past is not None:
            self._has_fitted = True
            chart.show(LanesThen(lanes, self.now), self.now)
        elif not self._has_fitted and len(lanes):
            # Again until everything was read: the logs know of attempts that no record names.
            self._has_fitted = self.feed.is_complete
            chart.window.fit(lanes.reach(), self.now)
            chart.show(lanes, self.now)
            if not chart.window.is_chosen:
                chart.put_cursor(self.desk.board.cursor or "")
        else:
            chart.show(lanes, self.now)

    def travelled(self, step: Step | None) -> None:
        """The lanes as they were: from the bars of now, so that nothing is read for it."""
        self.now = self.desk.now()
        self._shown_version = -1
        if step is None:
            self.chart.window.follow(self.now)
        self._tick()

    def pass_time(self) -> None:
        self.chart.tick(self.now)

    def named(self) -> str:
        window = self.chart.window
        present = "now" if self.desk.past is None else "then"
        end = present if window.follows else day_and_time(window.begin + window.span)[:16]
        return f"gantt {span(window.span)} to {end}"

    def settle(self) -> None:
        super().settle()
        has_bars = bool(len(self.feed.lanes))
        self.set_class(not has_bars, "-empty")
        if self.feed.is_loaded and not has_bars and not self._has_said_empty:
            self._has_said_empty = True
            self.query_one(".empty", Static).update(_EMPTY)
        self.query_one(BarDetail).told = self._told(self.chart.bar)

    def _told(self, bar: Bar | None) -> Told:
        if bar is None:
            key = key_name(key_of(ACTIONS["follow-now"], self.desk))
            return Told(why=f"nothing ran in this time: {key} goes to now")
        row = self.desk.board.rows.get(bar.job_id)
        head = row.summary.head if row is not None and row.summary is not None else ""
        gone = "" if row is not None else "its record is gone"
        # What has ended looks the same a second later: nothing is to be drawn for it.
        now = self.now if bar.is_running else self.now // 3600 * 3600
        return Told(bar, now, head or gone)

    @property
    def job_id(self) -> str:
        bar = self.chart.bar
        return bar.job_id if bar is not None else ""

    def on_gantt_chart_moved(self, event: GanttChart.Moved) -> None:
        if event.is_chosen and self.job_id in self.desk.board.rows:
            self.desk.board.cursor = self.job_id
        self.settle()

    # -- what is asked -------------------------------------------------------------------------

    def lacks(self, name: str) -> str | None:
        if name not in ("open", "export", *TO_ITS_AGENT):
            return super().lacks(name)
        if (reason := refusal(ACTIONS[name], self.desk)) is not None:
            return reason
        if not self.job_id:
            return "there is no bar here"
        if name == "open":
            return None if self.job_id in self.desk.board.rows else "its record is gone"
        return None if name == "export" else self.why_no_agent()

    def keys(self) -> list[tuple[str, str]]:
        opens = [] if self.lacks("open") else [(key_of(ACTIONS["open"], self.desk), "open")]
        return opens + super().keys()

    def on_gantt_chart_opened(self) -> None:
        self.action_act("open")

    def _do_open(self) -> None:
        if (bar := self.chart.bar) is not None:
            self.console.board.open_job(bar.job_id)

    def _do_export(self) -> None:
        self.console.jobs.export(self.chart.jobs())

    def _do_lanes(self) -> None:
        at = _LANES.index(self.chart.by)
        self.chart.choose(_LANES[(at + 1) % len(_LANES)])

    def _do_zoom_in(self) -> None:
        self.chart.zoom(1)

    def _do_zoom_out(self) -> None:
        self.chart.zoom(-1)

    def _do_follow_now(self) -> None:
        self.chart.follow()
