"""Lines as coloured pieces of safe text, and how a long one is broken; no widget in here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.style import Style

from mam_core.safe_text import ELLIPSIS, MAX_MARKS, fitting, one_line, safe

#: A line is not styled beyond this: one of 90,000 characters would hold everything up.
MOST_CHARS = 4000
_TAB = 4
#: Characters that are looked at for each column: one, and the marks on it.
_REACH = 1 + MAX_MARKS


class Span(NamedTuple):
    """Text that came from `safe`; its style is the name of a component class, or a style."""

    text: str
    style: str | Style = ""


Line = tuple[Span, ...]


class Paragraph(NamedTuple):
    """A line that may fill several rows; the later ones stand further in."""

    line: Line
    indent: int = 0


EMPTY = Paragraph(())


def line_of(*parts: tuple[str, str] | str) -> Line:
    """Foreign words made safe, each with the name of its style."""
    pairs = (part if isinstance(part, tuple) else (part, "") for part in parts)
    return tuple(Span(clipped(one_line(text)), style) for text, style in pairs if text)


def said(*parts: tuple[str, str] | str, indent: int = 0) -> Paragraph:
    """The same as a paragraph, with its spaces as they are: for words of our own."""
    pairs = (part if isinstance(part, tuple) else (part, "") for part in parts)
    return Paragraph(tuple(Span(clipped(safe(t)), style) for t, style in pairs if t), indent)


def clipped(text: str) -> str:
    return text if len(text) <= MOST_CHARS else text[: MOST_CHARS - 1] + ELLIPSIS


def plain_lines(text: str) -> list[str]:
    """A text of several lines made safe; line ends and indents stay, nothing is cut off."""
    text = text.replace("\r\n", "\n").expandtabs(_TAB)
    lines = safe(text, "\n").split("\n")
    if max(map(len, lines)) <= MOST_CHARS:
        return lines
    return [line[at : at + MOST_CHARS] for line in lines for at in _starts(line)]


def _starts(line: str) -> range:
    return range(0, max(1, len(line)), MOST_CHARS)


class Plain(Sequence[Paragraph]):
    """Many lines in one style; a paragraph is made when somebody looks at it."""

    def __init__(self, lines: Sequence[str], style: str = "", indent: int = 0) -> None:
        self._lines = lines
        self._style = style
        self._indent = indent

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, at: int) -> Paragraph:  # type: ignore[override]  # nobody slices it
        return Paragraph((Span(" " * self._indent + self._lines[at], self._style),), self._indent)


class Joined(Sequence[Paragraph]):
    """A few paragraphs of ours, and then perhaps a million of somebody else's."""

    def __init__(self, first: Sequence[Paragraph], rest: Sequence[Paragraph]) -> None:
        self._first = first
        self._rest = rest

    def __len__(self) -> int:
        return len(self._first) + len(self._rest)

    def __getitem__(self, at: int) -> Paragraph:  # type: ignore[override]  # nobody slices it
        first = len(self._first)
        return self._first[at] if at < first else self._rest[at - first]


# -- breaking --------------------------------------------------------------------------------


def height(paragraph: Paragraph, width: int) -> int:
    """How many rows it fills."""
    line = paragraph.line
    if len(line) == 1 and len(text := line[0].text) <= width and text.isascii():
        return 1
    text = "".join(span.text for span in line)
    return sum(1 for _ in _breaks(text, width, paragraph.indent))


def wrap(paragraph: Paragraph, width: int) -> list[Line]:
    """Its rows: broken between words where there are any."""
    text = "".join(span.text for span in paragraph.line)
    rows = []
    for start, end in _breaks(text, width, paragraph.indent):
        row = _cut(paragraph.line, start, end)
        rows.append((Span(" " * _inside(paragraph.indent, width)), *row) if start else row)
    return rows


def _inside(indent: int, width: int) -> int:
    """In a narrow place there is no room for an indent."""
    return indent if indent <= width // 2 else 0


def _breaks(text: str, width: int, indent: int) -> Iterator[tuple[int, int]]:
    width = max(2, width)
    room, at = width, 0
    while True:
        fits = at + fitting(text[at : at + room * _REACH], room)
        if fits >= len(text):
            yield at, len(text)
            return
        cut = text.rfind(" ", at, fits + 1)
        if cut <= at or text[at:cut].isspace():
            cut = max(fits, at + 1)
            yield at, cut
            at = cut
        else:
            yield at, cut
            at = cut + 1
        room = width - _inside(indent, width)


def _cut(line: Line, start: int, end: int) -> Line:
    if len(line) == 1:
        return (Span(line[0].text[start:end], line[0].style),)
    row, at = [], 0
    for span in line:
        first, last = max(start - at, 0), min(end - at, len(span.text))
        if first < last:
            row.append(Span(span.text[first:last], span.style))
        at += len(span.text)
    return tuple(row)
