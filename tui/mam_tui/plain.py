"""For terminals that can do less: which signs, which colours.

Widgets choose their signs by themselves; whatever else is drawn (borders, scroll bars, a
foreign letter in a prompt) passes a filter here, so that not one byte beyond ASCII is sent.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from mam_core.safe_text import cell_width

#: Sixteen colours are the terminal's own: themes that mix their colours would all look alike.
#: Textual before 8.2.5 has the second name.
_SIXTEEN_COLOURS = ("ansi-dark", "textual-ansi")

_SIGNS = {
    **dict.fromkeys("─━═╌┄╴╶▔▁▂", "-"),
    **dict.fromkeys("│┃║▏▎▌▐▕▊", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛╔╗╚╝", "+"),
    **dict.fromkeys("█▓▒░▆▇▄▀▃▅", "#"),
    **dict.fromkeys("•●○◆·", "*"),
    **dict.fromkeys("→▶⏵❯", ">"),
    "…": "~",
    "▲": "^",
    "▼": "v",
    "✔": "+",
    "✖": "x",
    "\u00a0": " ",
}


def wants_ascii(glyphs: str, environ: Mapping[str, str]) -> bool:
    """What the setting says; if it is left to us, what the locale says, and the kind of terminal.

    Without any locale nothing is known, and nearly all terminals can show more than ASCII.
    """
    if glyphs != "auto":
        return glyphs == "ascii"
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    locale = next((environ[name] for name in names if environ.get(name)), "")
    speaks_utf8 = not locale or "utf8" in locale.lower().replace("-", "")
    return not speaks_utf8 or environ.get("TERM") == "linux"


def usual_theme(colour_system: str | None, themes: Container[str]) -> str:
    """Where the operator chose none; empty: the usual one."""
    if colour_system != "standard":
        return ""
    return next((name for name in _SIXTEEN_COLOURS if name in themes), "")


class InAscii(LineFilter):
    """Cell by cell: what has no sign of its own becomes a question mark."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.text.isascii()
            else Segment(in_ascii(segment.text), segment.style, segment.control)
            for segment in segments
        ]


def in_ascii(text: str) -> str:
    """As wide as before."""
    return "".join(
        sign if sign.isascii() else _SIGNS.get(sign, "?" * cell_width(sign)) for sign in text
    )
