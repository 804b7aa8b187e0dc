"""What the history says about itself: how far it was read, and why there is nothing."""

from __future__ import annotations

from mam_core.safe_text import clip, one_line
from mam_tui.history.reading import Part, Progress, Sight

_EMPTY = {
    Part.JOBS: "nothing was ever registered here\n\n1  goes to the board, and n there makes a job",
    Part.ACTS: "nobody has done anything here yet\n\nwhat persons do to jobs stands here",
}
_READING = "reading …"


def sign(sight: Sight | None, now: Progress) -> str:
    """How far the log was read, or what is odd about it."""
    if now.words:
        return f"{clip(one_line(now.words), 200)} "
    if now.total:
        return f"reading the audit log: {now.done / now.total:.0%} of {now.total / 1e6:,.1f} MB "
    if sight is None:
        return f"{_READING} "
    parts = []
    if not sight.is_kept and sight.total:
        parts.append("the audit folder cannot be written: it is read anew each time")
    if sight.damaged:
        parts.append(f"{sight.damaged:,} lines of it cannot be read")
    return f"{'; '.join(parts)} " if parts else ""


def why_empty(part: Part, sight: Sight | None, now: Progress) -> str:
    if now.words and sight is None:
        return ""
    if sight is None or (now.total and not sight.total):
        return _READING
    if sight.want.text:
        words = clip(one_line(sight.want.text), 40)
        return f"none of {sight.total:,} {part} has {words!r} in it\n\nesc  shows all again"
    return _EMPTY[part]
