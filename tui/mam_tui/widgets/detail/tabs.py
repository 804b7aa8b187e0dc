"""All tabs of the panel, in their order; one that nobody has opened yet is neither made nor loaded.

Each brings its own part of the core with it, and a view that Textual must style: eight of
them at once were a fifth of the console's first frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mam_tui.desk import Desk
from mam_tui.widgets.detail.pane import PaneSource
from mam_tui.widgets.detail.tab import Setting, Tab

TAIL = "tail"


class Tabs(Mapping[str, Tab]):
    """By name; made when first asked for."""

    def __init__(self, setting: Setting, desk: Desk, pane: PaneSource) -> None:
        self._setting = setting
        self._desk = desk
        self._pane = pane
        self._makers: dict[str, Callable[[], Tab]] = {
            "timeline": self._timeline,
            TAIL: self._tail,
            "pane": self._screen,
            "record": self._record,
            "artifacts": self._artifacts,
            "output": self._output,
            "diff": self._diff,
            "why": self._why,
        }
        self.made: dict[str, Tab] = {}

    def __getitem__(self, name: str) -> Tab:
        if name not in self.made:
            self.made[name] = self._makers[name]()
        return self.made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def _timeline(self) -> Tab:
        from mam_tui.widgets.detail.timeline import TimelineTab

        return TimelineTab(self._setting)

    def _tail(self) -> Tab:
        from mam_tui.widgets.detail.tail import TailTab

        return TailTab(self._setting)

    def _screen(self) -> Tab:
        from mam_tui.widgets.detail.pane import PaneTab

        return PaneTab(self._setting, self._pane)

    def _record(self) -> Tab:
        from mam_tui.widgets.detail.record import RecordTab

        return RecordTab(self._setting)

    def _artifacts(self) -> Tab:
        from mam_tui.widgets.detail.artifacts import ArtifactsTab

        return ArtifactsTab(self._setting)

    def _output(self) -> Tab:
        from mam_tui.widgets.detail.output import OutputTab

        return OutputTab(self._setting, self._desk)

    def _diff(self) -> Tab:
        from mam_tui.widgets.detail.diff import DiffTab

        return DiffTab(self._setting)

    def _why(self) -> Tab:
        from mam_tui.widgets.detail.why import WhyTab

        return WhyTab(self._setting, self._desk)
