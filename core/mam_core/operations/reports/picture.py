"""Attempts over time as a picture: SVG inside the page, readable without colours, a row each.

Thin: it waited to be claimed. Full: it ran. Hatched: its agent waited for a person.
A diamond: a person did something.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mam_core.clock import stamp
from mam_core.operations.bars import Bar
from mam_core.operations.reports.html_text import line, took

_WIDE = 960.0
_LEFT = 150.0  #: for the names of rows
_RIGHT = 12.0
_ROW = 30.0
_THICK = 16.0
_AXIS = 26.0
_LETTER = 6.4  #: about as wide as one is in the picture's size of writing
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
_DAY = 86400
_MOST_TICKS = 8


class Mark(NamedTuple):
    """A moment on a row."""

    at: float
    words: str


class Row(NamedTuple):
    """One line of the picture; `name` and the words of marks are foreign."""

    name: str
    bars: Sequence[Bar]
    marks: Sequence[Mark] = ()
    link: str = ""  #: an id on this page


class _Scale(NamedTuple):
    begin: float
    end: float

    def x(self, at: float) -> float:
        share = (at - self.begin) / (self.end - self.begin)
        return _LEFT + min(1.0, max(0.0, share)) * (_WIDE - _LEFT - _RIGHT)


def picture(rows: Sequence[Row], now: float) -> str:
    """Empty where nothing has begun."""
    bars = [bar for row in rows for bar in row.bars]
    if not bars:
        return ""
    begin = min(bar.began_at if bar.queued_at is None else bar.queued_at for bar in bars)
    end = max(now if bar.ended_at is None else bar.ended_at for bar in bars)
    scale = _Scale(begin, max(end, begin + 1.0))
    high = _AXIS + _ROW * len(rows) + 6
    parts = [
        f'<svg viewBox="0 0 {_WIDE:g} {high:g}" role="img" aria-label="attempts over time">',
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect class="hatch" width="3" height="6"/></pattern></defs>',
        *_axis(scale, high),
    ]
    for number, row in enumerate(rows):
        parts += _row(row, scale, _AXIS + _ROW * number, now)
    return "\n".join([*parts, "</svg>"])


def _axis(scale: _Scale, high: float) -> Iterator[str]:
    span = scale.end - scale.begin
    fitting = (step for step in _STEPS if span / step <= _MOST_TICKS)
    step = next(fitting, _DAY * math.ceil(span / _DAY / _MOST_TICKS))
    form = "%H:%M:%S" if step < 60 else "%H:%M" if span < _DAY else "%d %b %H:%M"
    at = math.ceil(scale.begin / step) * step
    while at <= scale.end:
        x = scale.x(at)
        yield f'<line class="tick" x1="{x:.1f}" y1="18" x2="{x:.1f}" y2="{high:g}"/>'
        anchor = "end" if x > _WIDE - 40 else "middle"
        words = time.strftime(form, time.gmtime(at))
        yield f'<text class="when" x="{x:.1f}" y="12" text-anchor="{anchor}">{words}</text>'
        at += step


def _row(row: Row, scale: _Scale, top: float, now: float) -> Iterator[str]:
    middle = top + _ROW / 2
    name = f'<text class="name" x="0" y="{middle + 4:.1f}">{line(row.name, 22)}</text>'
    yield f'<a href="#{line(row.link)}">{name}</a>' if row.link else name
    for bar in row.bars:
        yield from _bar(bar, scale, middle, now)
    if row.bars:
        yield _words(row.bars[-1], scale, middle, now)
    for mark in row.marks:
        x, y = scale.x(mark.at), middle - _THICK / 2 - 2
        shape = f"M{x:.1f} {y - 4:.1f}l4 4l-4 4l-4 -4z"
        yield f'<path class="mark" d="{shape}"><title>{line(mark.words)}</title></path>'


def _bar(bar: Bar, scale: _Scale, middle: float, now: float) -> Iterator[str]:
    begin, end = scale.x(bar.began_at), scale.x(_end(bar, now))
    if bar.queued_at is not None and bar.queued_at < bar.began_at:
        level = f'y1="{middle:g}" x2="{begin:.1f}" y2="{middle:g}"'
        yield f'<line class="queued" x1="{scale.x(bar.queued_at):.1f}" {level}/>'
    title = f"attempt {bar.attempt}: {bar.outcome}, {stamp(bar.began_at)}, "
    title += took(_end(bar, now) - bar.began_at)
    yield (
        f'<rect class="bar {_kind(bar)}" x="{begin:.1f}" y="{middle - _THICK / 2:g}" rx="3" '
        f'width="{max(2.0, end - begin):.1f}" height="{_THICK:g}">'
        f"<title>{line(title)}</title></rect>"
    )
    for wait in bar.waits:
        left = scale.x(wait.began_at)
        right = scale.x(_end(bar, now) if wait.ended_at is None else wait.ended_at)
        if right - left >= 0.5:
            yield (
                f'<rect class="waits" x="{left:.1f}" y="{middle - _THICK / 2:g}" '
                f'width="{right - left:.1f}" height="{_THICK:g}">'
                "<title>waited for a person</title></rect>"
            )


def _words(bar: Bar, scale: _Scale, middle: float, now: float) -> str:
    """How the last attempt of a row ended: after its bar, else inside of it, else before."""
    words = f"{bar.outcome} · {took(_end(bar, now) - bar.began_at)}"
    begin, end = scale.x(bar.began_at), scale.x(_end(bar, now))
    wide = len(words) * _LETTER + 12
    y = f'y="{middle + 4:.1f}"'
    if end + wide <= _WIDE:
        return f'<text class="how" x="{end + 6:.1f}" {y}>{words}</text>'
    if end - begin >= wide:
        return f'<text class="how inside {_kind(bar)}" x="{begin + 6:.1f}" {y}>{words}</text>'
    since = begin if bar.queued_at is None else min(begin, scale.x(bar.queued_at))
    return f'<text class="how" x="{since - 6:.1f}" {y} text-anchor="end">{words}</text>'


def _end(bar: Bar, now: float) -> float:
    return max(bar.began_at, now if bar.ended_at is None else bar.ended_at)


def _kind(bar: Bar) -> str:
    return str(bar.outcome).replace(" ", "-")
