"""A page of Markdown as lines of a terminal: the part of Markdown that our pages use.

Headings, paragraphs, lists, tables and fenced code; comments are left out. Everything is
drawn harmlessly, whatever stands in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from mam_core.manual.inline import broken, marked, painted, strong
from mam_core.manual.tables import is_row, table
from mam_core.safe_text import cell_width, safe

#: Longer lines are hard to read, however wide the terminal is.
_WIDEST = 100
_NARROWEST = 20
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_FENCE = re.compile(r"\s*(```+|~~~+)")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_ITEM = re.compile(r"(\s*)([-*]|\d+\.)\s+(.*)")
_UNDERLINES = {1: "=", 2: "-"}


def rendered(text: str, width: int, *, colour: bool = False) -> Iterator[str]:
    """The lines of a page; blocks are parted by one empty line."""
    width = max(_NARROWEST, min(width, _WIDEST))
    lines: list[str] = []
    for block in _blocks(_COMMENT.sub("", text)):
        if lines:
            lines.append("")
        lines += _block(block, width, colour)
    yield from painted(lines) if colour else lines


def _blocks(text: str) -> Iterator[list[str]]:
    """Lines that belong together. A fence lasts until it is closed, empty lines and all."""
    block: list[str] = []
    fence = ""
    for line in text.expandtabs(4).splitlines():
        opening = _FENCE.match(line)
        if fence:
            block.append(line)
            if line.strip() == fence:
                yield block
                block, fence = [], ""
        elif opening:
            if block:
                yield block
            block, fence = [line], opening[1]
        elif not line.strip():
            if block:
                yield block
            block = []
        elif _HEADING.match(line):
            if block:
                yield block
            yield [line]
            block = []
        else:
            block.append(line)
    if block:
        yield block


def _block(block: list[str], width: int, colour: bool) -> Iterator[str]:
    heading = _HEADING.match(block[0])
    if _FENCE.match(block[0]):
        last = -1 if len(block) > 1 and _FENCE.match(block[-1]) else None
        for line in block[1:last]:
            yield f"    {safe(line)}".rstrip()
    elif heading:
        yield from _heading(len(heading[1]), heading[2], colour)
    else:
        for is_table, lines in groupby(block, is_row):
            if is_table:
                yield from table(list(lines), width, colour=colour)
            else:
                yield from _prose(list(lines), width, colour)


def _heading(level: int, words: str, colour: bool) -> Iterator[str]:
    text = marked(words, colour=False)
    yield strong(text, colour=colour)
    if not colour and level in _UNDERLINES:
        yield _UNDERLINES[level] * cell_width(text)


def _prose(lines: list[str], width: int, colour: bool) -> Iterator[str]:
    """Paragraphs and items: a line that begins no item goes on with the one before."""
    parts: list[tuple[str, str]] = []  # what stands before the first line of each, and its text
    for line in lines:
        item = _ITEM.match(line)
        if item:
            parts.append((f"{item[1]}{item[2]} ", item[3]))
        elif parts:
            before, text = parts[-1]
            parts[-1] = (before, f"{text} {line.strip()}")
        else:
            parts.append(("", line.strip()))
    for before, text in parts:
        indent = " " * len(before)
        for number, line in enumerate(broken(marked(text, colour=colour), width - len(before))):
            yield f"{indent if number else before}{line}"
