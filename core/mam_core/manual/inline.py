"""The marks inside a line of Markdown (code, strength, links), and lines broken at a width.

Where there is colour, a mark travels through the breaking of lines as one private character.
The text passes through `safe_text` first, which leaves none of those, so that no text can
forge one. Without colour, code keeps the signs that Markdown has for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mam_core.safe_text import cell_width, safe

_CODE, _STRONG, _END = "\ue000", "\ue001", "\ue002"
_ANSI = {_CODE: "\x1b[36m", _STRONG: "\x1b[1m", _END: "\x1b[0m"}
_MARKS = re.compile(f"[{_CODE}{_STRONG}{_END}]")

_CODE_SPAN = re.compile(r"(`+)(.+?)\1")
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_STRONG_SPAN = re.compile(r"\*\*(.+?)\*\*")
_EMPHASIS = re.compile(r"(?<![\w*])\*(\w[^*]*)\*(?![\w*])")
_PAGE = re.compile(r"(?:docs/)?([\w-]+)\.md")


def marked(text: str, *, colour: bool) -> str:
    """A line of Markdown as harmless text; what is code in it is left as it is."""
    opening, closing = (_CODE, _END) if colour else ("`", "`")
    parts: list[str] = []
    at = 0
    text = safe(text)
    for span in _CODE_SPAN.finditer(text):
        parts += [_prose(text[at : span.start()], colour), opening, span[2].strip(), closing]
        at = span.end()
    return "".join([*parts, _prose(text[at:], colour)])


def _prose(text: str, colour: bool) -> str:
    text = _IMAGE.sub(r"[picture: \1]", text)
    text = _EMPHASIS.sub(r"\1", _LINK.sub(_link, text))
    return _STRONG_SPAN.sub(f"{_STRONG}\\1{_END}" if colour else r"\1", text)


def _link(link: re.Match[str]) -> str:
    """A page of the manual is named as one asks for it; any other place as it is."""
    words, target = link[1], link[2].partition("#")[0]
    page = _PAGE.fullmatch(target)
    if page:
        asked = f"mam help {page[1]}"
        return asked if words.removesuffix(".md") == page[1] else f"{words} ({asked})"
    return words if target in ("", words) else f"{words} ({target})"


def strong(text: str, *, colour: bool) -> str:
    return f"{_STRONG}{text}{_END}" if colour else text


def width_of(text: str) -> int:
    return cell_width(_MARKS.sub("", text))


def broken(text: str, width: int) -> Iterator[str]:
    """Lines of at most `width` columns; a word that is longer has a line of its own."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and width_of(longer) > width:
            yield line
            line = word
        else:
            line = longer
    if line:
        yield line


def painted(lines: Iterable[str]) -> Iterator[str]:
    """Marks as colours, ended and begun again at every end of a line."""
    going_on = ""
    for line in lines:
        marks = _MARKS.findall(line)
        text = _ANSI.get(going_on, "") + _MARKS.sub(lambda mark: _ANSI[mark[0]], line)
        going_on = marks[-1] if marks else going_on
        going_on = "" if going_on == _END else going_on
        yield text + (_ANSI[_END] if going_on else "")
