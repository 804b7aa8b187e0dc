"""The top line: where we are, how many jobs are in which state, and how fresh all of it is."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from mam_tui.faces import STYLES
from mam_tui.status_line import Standing, status_line
from mam_tui.styles import ink


class StatusBar(Widget):
    """One line; `status_line` decides what has room in it."""

    DEFAULT_CSS = """
    StatusBar { dock: top; height: 1; background: $panel; color: $foreground; }
    StatusBar > .status-bar--view { color: $text-primary; text-style: bold; }
    StatusBar > .status-bar--trouble { color: $text-error; text-style: bold; }
    StatusBar > .status-bar--notice { color: $text-warning; text-style: bold; }
    StatusBar > .status-bar--muted { color: $text-muted; }
    StatusBar > .status-bar--waiting { color: $text-warning; text-style: bold; }
    StatusBar > .status-bar--error { color: $text-error; }
    StatusBar > .status-bar--warning { color: $text-warning; }
    StatusBar > .status-bar--working { color: $text-success; }
    StatusBar > .status-bar--idle { color: $text-muted; }
    StatusBar > .status-bar--blocked { color: $text-secondary; }
    StatusBar > .status-bar--queued { color: $text; }
    StatusBar > .status-bar--done { color: $text-success; }
    """
    COMPONENT_CLASSES = {
        f"status-bar--{name}" for name in (*STYLES, "view", "trouble", "notice", "muted")
    }

    standing: reactive[Standing] = reactive(Standing())

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__()
        self.ascii_only = ascii_only

    def render(self) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis", end="")
        for said in status_line(self.standing, self.size.width, ascii_only=self.ascii_only):
            line.append(said.words, self._style(said.style))
        return line

    def _style(self, name: str) -> Style:
        return ink(self, f"status-bar--{name}")
