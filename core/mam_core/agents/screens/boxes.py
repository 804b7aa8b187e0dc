"""The input box of an agent: where it is, and which text waits in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mam_core.agents.screens.rules import Box, Shape

#: The box is at the bottom: under it are a few lines, and never more than these.
_LINES_BELOW = 16


class Seen(NamedTuple):
    """Its first line, the first line after it, and the text; "" when only a hint stands there."""

    first: int
    end: int
    text: str


def find_box(box: Box | None, lines: Sequence[str]) -> Seen | None:
    """The lowest one."""
    if box is None:
        return None
    for at in range(len(lines) - 1, max(-1, len(lines) - 1 - 2 * _LINES_BELOW), -1):
        seen = _frame(box, lines, at) if box.shape is Shape.FRAME else _line(box, lines, at)
        if seen is None:
            continue
        under = sum(bool(line.strip()) for line in lines[seen.end :])
        return seen if under <= _LINES_BELOW else None
    return None


def _line(box: Box, lines: Sequence[str], at: int) -> Seen | None:
    match = box.line.match(lines[at])
    if match is None:
        return None
    first = at
    if box.above is not None:  # belongs to the box: it is drawn with it
        first = next((place for place in range(at - 1, -1, -1) if lines[place].strip()), -1)
        if first < 0 or not box.above.match(lines[first]):
            return None
    texts = [match["text"] or ""]
    end = at + 1
    while end < len(lines) and box.more is not None and (more := box.more.match(lines[end])):
        texts.append(more["text"])
        end += 1
    under = next((line for line in lines[end:] if line.strip()), "")
    if (box.below is not None and not box.below.match(under)) or (box.last and under):
        return None
    return Seen(first, end, _text(box, texts))


def _frame(box: Box, lines: Sequence[str], at: int) -> Seen | None:
    """Upward from the foot; the frame's own last line names the model and is no text."""
    if box.below is None or not box.below.match(lines[at]):
        return None
    texts: list[str] = []
    first = at
    while first and (match := box.line.match(lines[first - 1])):
        texts.insert(0, match["text"] or "")
        first -= 1
    return Seen(first, at + 1, _text(box, texts[:-1])) if texts else None


def _text(box: Box, texts: Sequence[str]) -> str:
    text = "\n".join(line.rstrip() for line in texts).strip()
    return "" if any(pattern.match(text) for pattern in box.empty) else text
