"""Texts that a terminal, a markup language or a column could take for more than text.

Each carries `MARK`, so that one can see where it arrived.
"""

from __future__ import annotations

MARK = "PWNED"

MARKUP = {
    "markup": f"[bold red]{MARK}[/] [/] [/bold] [link=http://x]{MARK}[/link] \\[ [[ ]",
    "click": f"[@click=app.quit]{MARK}[/] [@click=app.bell()]x[/] [on red]y",
    "format": f"{{{MARK}}} %s %(x)s {{0}} $HOME `id` $(id)",
}
SEQUENCES = {
    "sgr": f"\x1b[31m{MARK}\x1b[0m\x1b[7m",
    "csi": f"\x1b[2J\x1b[H\x1b[3;3r\x1b[6n\x1b[>c\x1b[?1049l\x1b[?25h{MARK}\x1b[99;99H",
    "title": f"\x1b]0;{MARK}-title\x07\x1b]2;{MARK}\x1b\\",
    "link": f"\x1b]8;;http://{MARK}\x1b\\click\x1b]8;;\x1b\\",
    "clipboard": f"\x1b]52;c;UFdORUQ=\x07{MARK}",
    "report": f"\x1b]7501;state=done:app={MARK}\x1b\\",
    "strings": f"\x1bPq{MARK}\x1b\\\x1b_G{MARK}\x1b\\\x1b^{MARK}\x1b\\\x1bX{MARK}\x1b\\\x1bPtmux;x",
    "unfinished": f"{MARK}\x1b]0;never ends \x1b[38;5;",
    "c1": f"\x9b31m{MARK}\x9d0;{MARK}\x9c\x90q\x9c\x85\x8d\x98",
    "reset": f"\x1bc\x1b(0lqqk\x1b(B\x1b#8\x0e{MARK}\x0f",
}
CONTROLS = {
    "c0": f"{MARK}\r\x08\x08\x0b\x0c\x00\x07\x7f\x05over\rwritten",
    "lines": f"one\u2028two\u2029three\x85{MARK}\tfour",
}
SHAPES = {
    "bidi": f"\u202e{MARK}\u202c \u2066x\u2069 \u200f\u061c\u200e",
    "zero width": f"P\u200bW\u200cN\u200d\u2060E\ufeffD {MARK}\u00ad\u034f\u3164\U000e0041",
    "tower": f"Z{'́̂' * 250}{MARK}",
    "wide": f"日本語 한국어 {MARK} ｗｉｄｅ 😀👍",
    "joined": f"👨\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 👍🏽 🇩🇪 ☺️ {MARK}",
    "surrogates": f"{MARK} \ud800 \udfff \udc80",
}
LONG = f"{MARK} " + "x" * 200_000

_ALL = {**MARKUP, **SEQUENCES, **CONTROLS, **SHAPES}


def everything(*, utf8: bool = True) -> str:
    """All of them in one text of several lines."""
    text = "\n".join(_ALL.values())
    return text.encode("utf-8", "replace").decode() if utf8 else text


def one_line(*, utf8: bool = True) -> str:
    return everything(utf8=utf8).replace("\n", " ")


def printable() -> str:
    """What a name may hold: no control, and yet no friend of a column."""
    return "".join(one for one in f"{MARK}[/][b] 日😀é́̂̃̄{{0}}" if one.isprintable())


def file_name(tag: str) -> str:
    """All that a file can be called; the limit is 255 bytes."""
    return f"{tag}\x1b]0;{MARK}\x07\r[b]\u202e{MARK}\x9b2J\n\u200bé́日😀"
