"""The terminal that the doctor is called in: what the console can draw there, and hear of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping

from mam_core.doctor.findings import Area, Finding, note, ok, warning
from mam_core.doctor.ground import Look
from mam_core.doctor.programs import told_by

_AREA = Area.TERMINAL
_SMALLEST = (80, 24)
_FEW_COLOURS = 16
#: A person feels it when Esc takes longer.
_SLOW_ESC_MS = 100


def kind(look: Look) -> Iterator[Finding]:
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        yield note(_AREA, "kind", "this is no terminal: nothing can be said about yours")
        return
    term = os.environ.get("TERM", "")
    if term in ("", "dumb"):
        words = f"TERM is {term or 'not set'}: the console cannot be drawn"
        yield warning(_AREA, "TERM", words, advice="export TERM=xterm-256color")
        return
    yield from _colours(term, os.environ)
    yield from _size()


def _colours(term: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    count = known_colours(term)
    if count is None:
        words = f"this machine has no description of a terminal called {term}"
        advice = "install ncurses-term, or export TERM=xterm-256color"
        yield warning(_AREA, "TERM", words, advice=advice)
        return
    if environ.get("NO_COLOR"):
        yield ok(_AREA, "TERM", f"{term}, without colours because NO_COLOR is set")
    elif environ.get("COLORTERM") in ("truecolor", "24bit"):
        yield ok(_AREA, "TERM", f"{term}, in all colours")
    elif count < _FEW_COLOURS:
        words = f"{term} has {count} colours: some states differ by their signs alone"
        yield note(_AREA, "TERM", words, advice="export TERM=xterm-256color, if it can do that")
    else:
        yield ok(_AREA, "TERM", f"{term}, {count} colours")


def known_colours(term: str) -> int | None:
    """How many the system's description of this terminal has; None: there is no description.

    Asked once in a process: the library keeps to the first terminal that it was told of.
    """
    import curses

    try:
        curses.setupterm(term, 2)
        return max(curses.tigetnum("colors"), 0)
    except curses.error:
        return None


def _size() -> Iterator[Finding]:
    try:
        columns, lines = os.get_terminal_size(2)
    except OSError:
        return
    if not columns or not lines:
        return  # nobody has told the terminal its size
    if columns < _SMALLEST[0] or lines < _SMALLEST[1]:
        words = f"{columns} x {lines} is small: the console drops columns and panels"
        yield note(_AREA, "size", words, advice="make it 80 x 24 or larger")
    else:
        yield ok(_AREA, "size", f"{columns} x {lines}")


def characters(look: Look) -> Iterator[Finding]:
    """By the locale, as the console decides it."""
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    name = next((name for name in names if os.environ.get(name)), "")
    locale = os.environ.get(name, "")
    if not locale:
        yield ok(_AREA, "characters", "no locale is set; UTF-8 is assumed")
    elif "utf8" in locale.lower().replace("-", ""):
        yield ok(_AREA, "characters", f"UTF-8 ({name}={locale})")
    else:
        words = f"{name} is {locale}: the console draws in ASCII"
        advice = 'export LC_ALL=C.UTF-8, or set [console] glyphs = "unicode"'
        yield note(_AREA, "characters", words, advice=advice)


def around(look: Look) -> Iterator[Finding]:
    """The tmux that this terminal itself runs in, which is the user's own."""
    if not os.environ.get("TMUX"):
        yield ok(_AREA, "tmux around it", "none")
        return
    lines = {
        name: told_by(["tmux", "show-options", "-sv", name])
        for name in ("focus-events", "escape-time")
    }
    if lines["focus-events"] == "off":
        words = (
            "your tmux keeps focus events to itself, so the console always thinks that you look at "
            "it, and never calls you"
        )
        advice = "set -s focus-events on, in your tmux.conf"
        yield warning(_AREA, "tmux around it", words, rule="focus", advice=advice)
    if lines["escape-time"].isdecimal() and int(lines["escape-time"]) > _SLOW_ESC_MS:
        words = f"your tmux holds every Esc back for {lines['escape-time']} ms"
        advice = "set -s escape-time 10, in your tmux.conf"
        yield note(_AREA, "tmux around it", words, rule="escape", advice=advice)
    if not os.environ.get("TERM", "").startswith(("tmux", "screen")):
        words = f"TERM is {os.environ.get('TERM', '')} inside tmux, which draws as tmux"
        advice = "set -s default-terminal tmux-256color, in your tmux.conf"
        yield note(_AREA, "tmux around it", words, rule="name", advice=advice)
