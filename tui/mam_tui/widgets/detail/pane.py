"""The agent's own screen, in its colours; a line that did not change is neither parsed nor drawn.

Where the picture comes from is somebody else's business: a source is asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from textual.geometry import Region

from mam_tui.widgets.detail.line_view import LineView
from mam_tui.widgets.detail.sgr import PLAIN, parse_all
from mam_tui.widgets.detail.spans import Line
from mam_tui.widgets.detail.tab import Question, Setting, Tab

if TYPE_CHECKING:
    from mam_core.registry import Registry


NEAR_SEC = 0.2
#: Each look is a question over the network, and an answer with a whole screen.
FAR_SEC = 1.0


class Sight(NamedTuple):
    """A pane as it looks, or why it cannot be seen."""

    lines: Sequence[str] = ()
    words: str = ""  #: beside the picture; instead of it, when there is none
    is_far: bool = False  #: another host was asked for it


#: Asked on a thread for the pane of a job.
PaneSource: TypeAlias = "Callable[[Registry, str], Sight]"


def no_source(registry: Registry, job_id: str) -> Sight:
    """For a console that looks at no tmux server."""
    return Sight((), "no session of this host shows this job: there is no screen to look at")


class Screenful(LineView):
    """Given lines with SGR colours."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[Line] = []

    @property
    def rows(self) -> int:
        return len(self._lines)

    def row(self, at: int) -> Line:
        return self._lines[at]

    def put(self, raw: Sequence[str]) -> None:
        lines, _ = parse_all(PLAIN, raw)
        before, self._lines = self._lines, lines
        if len(before) != len(lines):
            self.measure()
            self.refresh()
            return
        top = self.scroll_offset.y
        for at, (old, new) in enumerate(zip(before, lines, strict=True)):
            if old != new and 0 <= at - top < self.size.height:
                self.refresh(Region(0, at - top, self.size.width, 1))

    def clear(self) -> None:
        self.put(())


class PaneTab(Tab):
    """Five looks a second, while it is looked at; at another host's, one."""

    name: ClassVar[str] = "pane"
    look_sec: float | None = NEAR_SEC

    def __init__(self, setting: Setting, source: PaneSource) -> None:
        self._screen = Screenful()
        super().__init__(setting, self._screen)
        self._source = source

    def forget(self) -> None:
        self._screen.clear()

    def question(self) -> Question:
        job_id, source = self.job_id, self._source
        return lambda registry: source(registry, job_id)

    def answer(self, answer: Any) -> None:
        sight: Sight = answer
        self._screen.put(sight.lines)
        self._screen.say(sight.words)
        self.note = sight.words if sight.lines else ""
        self.look_sec = FAR_SEC if sight.is_far else NEAR_SEC
