"""``:audit`` and ``:schedules``: a page of text that is asked for on a thread, and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from mam_core.safe_text import one_line
from mam_tui.errands import ask
from mam_tui.screens.dialog import Dialog
from mam_tui.widgets.reading import Reading

if TYPE_CHECKING:
    from mam_core.registry import Registry
    from mam_tui.app import Console

#: What the frame and the padding around the page take.
_AROUND = 6


class Page(Dialog[None]):
    """The same words that the command line prints; an answer that comes too late is dropped."""

    DEFAULT_CSS = """
    Page { align: center middle; }
    Page > Reading {
        width: 90%; height: 80%; padding: 1 2; background: $surface; border: round $primary;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "leave", "leave")]

    def __init__(
        self, console: Console, waiting: str, question: Callable[[Registry, int], Sequence[str]]
    ) -> None:
        super().__init__()
        self._operated = console
        self._waiting = waiting
        self._question = question

    def compose(self) -> ComposeResult:
        with Reading():
            yield Static(Text(self._waiting, "dim"))

    def opened(self) -> None:
        width = max(40, self._operated.size.width * 9 // 10 - _AROUND)
        ask(
            self._operated,
            lambda registry: self._question(registry, width),
            self._show,
            lambda sentence: self._show([sentence]),
        )

    def _show(self, lines: Sequence[str]) -> None:
        for shown in self.query(Static):  # none, once the page is being left
            shown.update(Text("\n".join(map(one_line, lines))))

    def action_leave(self) -> None:
        self.dismiss()


def audit_page(console: Console) -> Page:
    """Takes as long as the project's own audits do."""
    from mam_core.operations.audit_report import audit
    from mam_core.operations.audit_text import audit_lines
    from mam_core.operations.doctor import Ground

    desk = console.desk

    def question(registry: Registry, width: int) -> Sequence[str]:
        ground = Ground(registry, desk.registry_path, desk.config, desk.allow_network)
        return list(audit_lines(audit(ground), width))

    return Page(console, "looking at everything …", question)


def schedules_page(console: Console) -> Page:
    from mam_core.operations.schedule import standing
    from mam_core.operations.schedule_text import remarks, table_lines

    config = console.desk.config

    def question(registry: Registry, width: int) -> Sequence[str]:
        found = standing(registry, config)
        if not found:
            return ["there are no schedules: [schedules.NAME] of mam.toml makes one"]
        return [*table_lines(found, width), "", *remarks(found)]

    return Page(console, "looking …", question)
