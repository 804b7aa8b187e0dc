"""One line above a tab: which job this is, in which state, and what the tab says about itself."""

from __future__ import annotations

from typing import NamedTuple

from rich.style import Style
from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from mam_core.safe_text import clip, one_line
from mam_tui.faces import STYLES, Face


class Words(NamedTuple):
    """What the line says; `note` is the tab's."""

    job_id: str = ""
    face: Face | None = None
    attempt: int = 0
    note: str = ""


class Heading(Widget):
    """Drawn anew only when it says something else."""

    DEFAULT_CSS = """
    Heading { height: 1; background: $surface; color: $foreground; }
    Heading > .heading--job { text-style: bold; }
    Heading > .heading--note { color: $text-muted; }
    Heading > .heading--waiting { color: $text-warning; text-style: bold; }
    Heading > .heading--error { color: $text-error; }
    Heading > .heading--warning { color: $text-warning; }
    Heading > .heading--working { color: $text-success; }
    Heading > .heading--idle { color: $text-muted; }
    Heading > .heading--blocked { color: $text-secondary; }
    Heading > .heading--queued { color: $text; }
    Heading > .heading--done { color: $text-success; }
    """
    COMPONENT_CLASSES = {f"heading--{name}" for name in (*STYLES, "job", "note")}

    words: reactive[Words] = reactive(Words())

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__()
        self._ascii = ascii_only

    def render(self) -> Text:
        words = self.words
        line = Text(no_wrap=True, overflow="ellipsis", end="")
        line.append(one_line(words.job_id), self._style("job"))
        if words.face is not None:
            glyph = words.face.ascii if self._ascii else words.face.glyph
            line.append(f"  {glyph} {words.face.word}", self._style(words.face.style))
        if words.attempt:
            line.append(f"  attempt {words.attempt}")
        if words.note:
            line.append(f"  {clip(one_line(words.note), 200)}", self._style("note"))
        return line

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"heading--{name}")
