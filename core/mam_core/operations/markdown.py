"""Foreign text in a Markdown page: shown as it is, and never able to be anything else.

A block of code ends at a fence at least as long as its own, and a span of code at a run
of backticks of the same length; so both are made longer than any run inside. Control
characters leave as visible escapes, as on every other page of ours.
"""

from __future__ import annotations

import re

from mam_core.safe_text import one_line, safe

_TICKS = re.compile(r"`+")
_CUT = "\n… ({} characters are left out)"


def code(text: str, most: int = 400) -> str:
    """One line of foreign text as a span of code; nothing at all for nothing."""
    line = one_line(text[: 4 * most])
    if len(line) > most:
        line = line[: most - 1] + "…"
    if not line:
        return ""
    ticks = "`" * (_longest_run(line) + 1)
    # The spaces are not part of the span, and part backticks at its ends from the fence.
    space = " " if line.startswith(("`", " ")) or line.endswith(("`", " ")) else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def block(text: str, most: int = 20_000, kind: str = "text") -> str:
    """Foreign lines as a fenced block."""
    kept = text[:most]
    shown = safe(kept.replace("\r\n", "\n"), keep="\n\t")
    if len(text) > most:
        shown += _CUT.format(len(text) - most)
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"{fence}{kind}\n{shown.rstrip()}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)
