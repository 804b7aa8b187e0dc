"""The charts: how much ended, how, how long it waited and ran, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from mam_core.operations.bars import Dimension
from mam_core.operations.statistics import Period
from mam_tui.actions import ACTIONS, Place, key_of, refusal
from mam_tui.bars.panels import AROUND, PANELS, Question, panels
from mam_tui.screens.timed import TimedView
from mam_tui.screens.view import bindings
from mam_tui.widgets.chart import ChartPage
from mam_tui.widgets.detail.spans import Line
from mam_tui.widgets.key_bar import KeyBar, key_name
from mam_tui.widgets.status_bar import StatusBar

_PERIODS = tuple(Period)
_BY = (None, Dimension.AGENT, Dimension.GROUP, Dimension.SESSION)
#: They would be done to a job that nobody sees.
_ON_A_JOB = ("attach", "say", "answer")
#: What no chart can show any more is forgotten so often.
_FORGET_SEC = 3600.0


class ChartsScreen(TimedView):
    """Panels in a grid, keys."""

    DEFAULT_CSS = """
    ChartsScreen ChartPage { padding: 0 1; scrollbar-gutter: stable; }
    ChartsScreen.-empty ChartPage { display: none; }
    """
    NAME = "charts"
    PLACES = (Place.CHARTS, Place.EVERYWHERE)
    BINDINGS: ClassVar[list[BindingType]] = bindings(PLACES)

    def compose(self) -> ComposeResult:
        yield StatusBar(ascii_only=self._ascii)
        yield ChartPage(self._panels, PANELS, AROUND)
        yield Static("reading the registry …", classes="empty", markup=False)
        yield KeyBar()

    def on_mount(self) -> None:
        self._period = Period.HOUR
        self._by: Dimension | None = None
        self._point = 0
        self._forgot_at = self.now
        self.add_class("-empty")
        self.page.focus()

    @property
    def page(self) -> ChartPage:
        return self.query_one(ChartPage)

    # -- what is seen --------------------------------------------------------------------------

    def draw(self) -> None:
        self._point = int(self.now // self._period.value)
        self._settle_empty()
        self.page.draw()

    def pass_time(self) -> None:
        """Only when another point has begun."""
        if self.now - self._forgot_at > _FORGET_SEC:
            self._forgot_at = self.now
            self.feed.statistics.forget(self.now)
        if int(self.now // self._period.value) != self._point:
            self.draw()

    def _panels(self, width: int, height: int) -> Sequence[Sequence[Line]]:
        asked = Question(self._period, self.now, self._by, width, height, self._ascii)
        return panels(self.feed.statistics, asked)

    def _settle_empty(self) -> None:
        is_empty = not self.feed.statistics.chart(self._period, self.now).total.ended
        self.set_class(is_empty, "-empty")
        if is_empty and self.feed.is_loaded:
            self.query_one(".empty", Static).update(self._why_empty())

    def _why_empty(self) -> str:
        words = f"nothing ended in the last {self._period.word}"
        if self._period is _PERIODS[-1]:
            return f"{words}\n\nan attempt counts when it has ended"
        key = key_name(key_of(ACTIONS["period"], self.desk))
        return f"{words}\n\n{key}  shows a longer time"

    def named(self) -> str:
        by = f" by {self._by}" if self._by is not None else ""
        return f"charts, last {self._period.word}{by}"

    # -- what is asked -------------------------------------------------------------------------

    def lacks(self, name: str) -> str | None:
        if name in _ON_A_JOB:
            return refusal(ACTIONS[name], self.desk) or "no single job is seen here"
        return super().lacks(name)

    def _do_period(self) -> None:
        self._period = _PERIODS[(_PERIODS.index(self._period) + 1) % len(_PERIODS)]
        self._again()

    def _do_charts_by(self) -> None:
        self._by = _BY[(_BY.index(self._by) + 1) % len(_BY)]
        self._again()

    def _again(self) -> None:
        self.draw()
        self.page.action_first()
        self.settle()
