"""How a terminal is asked to tell a person something: the bell, OSC 9 or OSC 777.

Whoever holds the terminal writes what comes from here. The text passes through
`safe_text` once more, whoever made it: an escape sequence that is built from foreign
words must not be ended, or begun, by them.
"""

from __future__ import annotations

from collections.abc import Mapping

from mam_core.operations.notifier import TEXT_CELLS
from mam_core.safe_text import clip, one_line

BELL = "\a"
_ESC = "\x1b"
_END = "\x1b\\"
#: By `TERM_PROGRAM`, for those that show OSC 9.
_OSC9 = frozenset({"iTerm.app", "WezTerm", "ghostty"})


def terminal_words(
    text: str, *, bell: bool, form: str, environ: Mapping[str, str] | None = None
) -> str:
    """What is written to the terminal; `form` is ``[notify] terminal``. May be empty."""
    surroundings = environ or {}
    chosen = form_for(surroundings) if form == "auto" else form
    line = clip(one_line(text), TEXT_CELLS)
    if chosen == "osc9":
        # "4;1" would be a progress bar to some; our own word stands before everything.
        asked = f"{_ESC}]9;mam: {line}{_END}"
    elif chosen == "osc777":
        asked = f"{_ESC}]777;notify;mam;{line.replace(';', ',')}{_END}"
    else:
        asked = ""
    if asked and surroundings.get("TMUX"):
        asked = f"{_ESC}Ptmux;{asked.replace(_ESC, _ESC * 2)}{_END}"
    return (BELL if bell else "") + asked


def form_for(environ: Mapping[str, str]) -> str:
    """Which form this terminal is known to show; "off" where nobody knows."""
    term = environ.get("TERM", "")
    if environ.get("TMUX"):
        return "off"  # what lies around tmux is not told, and passing through may be forbidden
    if term.startswith(("rxvt", "foot")) or environ.get("VTE_VERSION"):
        return "osc777"
    if environ.get("TERM_PROGRAM") in _OSC9 or term.startswith(("xterm-kitty", "xterm-ghostty")):
        return "osc9"
    return "off"
