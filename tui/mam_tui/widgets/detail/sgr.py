"""What a program printed, with its colours and with nothing else that it asked of a terminal.

Only SGR, the sequences that choose a style, is read; every other sequence is taken out and
every other control character made visible. Parsing costs far more than reading does, so a
line is parsed once for each style that is carried into it: colours run on over line ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from rich.color import Color
from rich.style import Style

from mam_core.safe_text import safe
from mam_tui.widgets.detail.spans import MOST_CHARS, Line, Span, clipped

#: Distinct lines that are kept parsed: some screens of them.
_KEPT = 4096

_SEQUENCE = re.compile(
    r"\x1b\[(?P<sgr>[0-9;:]*)m"
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # every other command with parameters
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links, clipboards, device strings
    r"|\x1b[ -/]*[0-~]"
    r"|\x1b"
)


class Sgr(NamedTuple):
    """The style that is in force. Blinking and hidden text are not: all text is to be read."""

    fore: str = ""
    back: str = ""
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False
    strike: bool = False


PLAIN = Sgr()


@lru_cache(maxsize=_KEPT)
def parse(carried: Sgr, raw: str) -> tuple[Line, Sgr]:
    """One line, and the style that it leaves behind."""
    if "\x1b" not in raw:
        return (Span(clipped(safe(_tabs(raw[: MOST_CHARS + 1]))), _style(carried)),), carried
    spans, now, at = [], carried, 0
    raw = raw[: 2 * MOST_CHARS]
    room = MOST_CHARS
    for found in _SEQUENCE.finditer(raw):
        text = raw[at : found.start()][:room]
        if text:
            spans.append(Span(safe(_tabs(text)), _style(now)))
            room -= len(text)
        at = found.end()
        if found["sgr"] is not None:
            now = _applied(now, found["sgr"])
    if rest := raw[at:][:room]:
        spans.append(Span(safe(_tabs(rest)), _style(now)))
    return tuple(spans), now


def parse_all(carried: Sgr, lines: Iterable[str]) -> tuple[list[Line], Sgr]:
    parsed = []
    for raw in lines:
        line, carried = parse(carried, raw)
        parsed.append(line)
    return parsed, carried


def _tabs(text: str) -> str:
    return text.expandtabs(8) if "\t" in text else text


@lru_cache(maxsize=512)
def _style(sgr: Sgr) -> Style | str:
    if sgr == PLAIN:
        return ""
    return Style(
        color=Color.parse(sgr.fore) if sgr.fore else None,
        bgcolor=Color.parse(sgr.back) if sgr.back else None,
        bold=sgr.bold or None,
        dim=sgr.dim or None,
        italic=sgr.italic or None,
        underline=sgr.underline or None,
        reverse=sgr.reverse or None,
        strike=sgr.strike or None,
    )


_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_OFF = {
    21: ("bold",),
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    27: ("reverse",),
    29: ("strike",),
    39: ("fore",),
    49: ("back",),
}


def _applied(sgr: Sgr, text: str) -> Sgr:
    codes = _codes(text)
    for code in codes:
        if code == 0:
            sgr = PLAIN
        elif code in _ON:
            sgr = _with(sgr, {_ON[code]: True})
        elif code in _OFF:
            sgr = _with(sgr, {name: getattr(PLAIN, name) for name in _OFF[code]})
        elif code in (38, 48):
            colour = _chosen(codes)
            if colour:
                sgr = _with(sgr, {"fore" if code == 38 else "back": colour})
        elif (near := _NAMED.get(code)) is not None:
            sgr = _with(sgr, {near[0]: near[1]})
    return sgr


def _with(sgr: Sgr, changes: Mapping[str, Any]) -> Sgr:
    return sgr._replace(**changes)


#: The eight colours and their bright forms, by number: the terminal's or the theme's own.
_NAMED = {
    first + n: (where, f"color({n + bright})")
    for first, where, bright in (
        (30, "fore", 0),
        (40, "back", 0),
        (90, "fore", 8),
        (100, "back", 8),
    )
    for n in range(8)
}


def _codes(text: str) -> Iterator[int]:
    for part in text.split(";")[:64]:
        first, *more = [int(sub) if len(sub) < 6 else 0 for sub in part.split(":") if sub] or [0]
        if first == 4 and more == [0]:
            yield 24  # a shape of underline, and that is none
        else:
            yield first
            if first in (38, 48):
                yield from more


def _chosen(codes: Iterator[int]) -> str:
    """``5;n`` out of 256, or ``2;r;g;b``; empty for what is neither."""
    kind = next(codes, 0)
    if kind == 5:
        number = next(codes, -1)
        return f"color({number})" if 0 <= number < 256 else ""
    if kind == 2:
        parts = [next(codes, -1) for _ in range(3)]
        return "#{:02x}{:02x}{:02x}".format(*parts) if all(0 <= p < 256 for p in parts) else ""
    return ""
