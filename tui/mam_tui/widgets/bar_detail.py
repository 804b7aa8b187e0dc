"""The bar under the cursor in words: everything that its colour and its length only hint at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from mam_core.operations.bars import Bar
from mam_core.safe_text import clip, one_line
from mam_tui.bars.faces import OUTCOMES
from mam_tui.faces import STYLES
from mam_tui.moments import count, day_and_time, money, span, time_of_day
from mam_tui.styles import ink

_DAY_SEC = 86400
_PROMPT_CELLS = 300


class Told(NamedTuple):
    """What is shown: a bar, or why there is none."""

    bar: Bar | None = None
    now: float = 0.0
    prompt: str = ""
    why: str = ""


class BarDetail(Widget):
    """Two lines; what matters most stands left."""

    DEFAULT_CSS = """
    BarDetail {
        height: 2; background: $surface; color: $foreground;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    BarDetail > .bar-detail--muted { color: $text-muted; }
    BarDetail > .bar-detail--id { color: $text-primary; text-style: bold; }
    BarDetail > .bar-detail--waiting { color: $text-warning; }
    BarDetail > .bar-detail--error { color: $text-error; }
    BarDetail > .bar-detail--warning { color: $text-warning; }
    BarDetail > .bar-detail--working { color: $text-primary; }
    BarDetail > .bar-detail--idle { color: $text-muted; }
    BarDetail > .bar-detail--blocked { color: $text-secondary; }
    BarDetail > .bar-detail--queued { color: $text; }
    BarDetail > .bar-detail--done { color: $text-success; }
    """
    COMPONENT_CLASSES = {f"bar-detail--{name}" for name in (*STYLES, "muted", "id")}

    told: reactive[Told] = reactive(Told())

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__()
        self.ascii_only = ascii_only

    def render(self) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis", end="")
        bar, now = self.told.bar, self.told.now
        if bar is None:
            line.append(f" {one_line(self.told.why)}", ink(self, "bar-detail--muted"))
            return line
        face = OUTCOMES[bar.outcome]
        glyph = face.ascii if self.ascii_only else face.glyph
        line.append(f" {glyph} {face.word}", ink(self, f"bar-detail--{face.style}"))
        if bar.reason:
            line.append(f" ({clip(one_line(bar.reason), 40)})")
        line.append(f"  {one_line(bar.job_id)}", ink(self, "bar-detail--id"))
        line.append(f"  attempt {bar.attempt}  {self._when(bar, now)}\n")
        muted = ink(self, "bar-detail--muted")
        for words in _facts(bar, now):
            line.append(f" {clip(one_line(words), 60)} ", muted)
        line.append(f" {clip(one_line(self.told.prompt[:4000]), _PROMPT_CELLS)}")
        return line

    def _when(self, bar: Bar, now: float) -> str:
        end = now if bar.ended_at is None else bar.ended_at
        is_near = abs(now - bar.began_at) < _DAY_SEC
        began = time_of_day(bar.began_at) if is_near else day_and_time(bar.began_at)
        until = "now" if bar.ended_at is None else time_of_day(end)
        dash = "-" if self.ascii_only else "–"
        return f"{began}{dash}{until}  {span(end - bar.began_at)}"


def _facts(bar: Bar, now: float) -> Iterator[str]:
    yield bar.agent
    yield bar.session
    if bar.group:
        yield bar.group
    if bar.node:
        yield bar.node
    if bar.waiting_sec is not None:
        yield f"queued {span(bar.waiting_sec)}"
    waited = sum((now if w.ended_at is None else w.ended_at) - w.began_at for w in bar.waits)
    if bar.waits:
        yield f"asked {len(bar.waits)}x, {span(waited)}"
    if bar.tokens is not None:
        yield f"{count(bar.tokens)} tokens"
    if bar.cost is not None:
        yield money(bar.cost)
