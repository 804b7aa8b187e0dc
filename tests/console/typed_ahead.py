"""Keys that reach the console in one read, and what stands on the screen when all were acted on."""

from __future__ import annotations

from typing import NamedTuple

#: Esc as terminals send it that tell keys apart (CSI u). The old way, a lone byte that a letter
#: follows at once, is by every terminal's rules Alt and that letter.
ESC = "\x1b[27u"


class Typed(NamedTuple):
    keys: str
    shows: tuple[str, ...]
    hides: tuple[str, ...] = ()


TYPED = (
    Typed("7/flaky\r", ("mam history", "/flaky")),
    Typed("nhello", ("New job", "│hello ")),
    Typed("ncyhello", ("New job", "│cyhello "), ("Cancel job",)),
    Typed("8/x\r1/abc\r", ("mam board", "/abc")),
    Typed("/cyan", ("mam board", "/ cyan"), ("Cancel job",)),
    Typed(":copy", ("mam board", ": copy"), ("Cancel job",)),
    Typed(f"?{ESC}4", ("mam attention",), ("Keys that are valid here",)),
    Typed("cy", ("mam board", "Cancel job")),
)
