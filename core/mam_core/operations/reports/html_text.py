"""Foreign text on an HTML page: shown as it is, and never able to be anything else.

Two doors, one for a line and one for lines. Both make control characters, direction
overrides and invisible letters visible before they escape what HTML would read.
"""

from __future__ import annotations

from html import escape

from mam_core.safe_text import one_line, safe

_CUT = "\n… ({:,} characters are left out)"


def line(text: str, most: int = 400) -> str:
    """One line, also for the value of an attribute."""
    shown = one_line(text[: 4 * most])
    if len(shown) > most:
        shown = shown[: most - 1] + "…"
    return escape(shown)


def lines(text: str, most: int = 20_000) -> str:
    """As it is, for a ``<pre>``."""
    shown = safe(text[:most].replace("\r\n", "\n"), keep="\n\t").rstrip()
    if len(text) > most:
        shown += _CUT.format(len(text) - most)
    # A parser drops a line end right after the tag; the first one of the text is to stay.
    return "\n" + escape(shown)


def took(seconds: float) -> str:
    """How long, to two places: ``4.2 s``, ``3m 05s``, ``2h 07m``, ``3d 4h``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"
