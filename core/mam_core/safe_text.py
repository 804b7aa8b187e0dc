"""The one door through which foreign text reaches a terminal.

Prompts, labels, file names and error texts can hold escape sequences, direction
overrides and invisible characters that move the cursor, repaint the screen or
make one command look like another. They leave here as visible escapes (``\\x1b``,
``\\u202e``), with known widths, so that columns stay columns.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Any

#: How many marks may sit on one character; the writing systems that people use need fewer.
MAX_MARKS = 4

ELLIPSIS = "…"


def safe(text: str, keep: str = "") -> str:
    """`text` with everything dangerous made visible; characters of `keep` pass as they are.

    `keep` is for the line ends and tabs of a text that may fill several lines.
    """
    if text.isascii() and text.isprintable():
        return text
    shown = text.translate(_escapes_but(keep) if keep else _ESCAPES)
    return shown if shown.isascii() else _bounded(shown)


def one_line(text: str) -> str:
    """As `safe`, and each run of white space is one space: for a cell of a table."""
    return safe(" ".join(text.split()))


def cell_width(text: str) -> int:
    """How many columns of a terminal a text that came from `safe` fills."""
    if text.isascii():
        return len(text)
    return sum(map(_WIDTHS.__getitem__, text))


def clip(text: str, cells: int) -> str:
    """A safe text cut to at most `cells` columns; an ellipsis says that it was cut."""
    if cells <= 0:
        return ""
    if text.isascii():
        return text if len(text) <= cells else text[: cells - 1] + ELLIPSIS
    ends = list(accumulate(map(_WIDTHS.__getitem__, text)))
    if ends[-1] <= cells:
        return text
    return text[: bisect_right(ends, cells - 1)] + ELLIPSIS


def fitting(text: str, cells: int) -> int:
    """How many characters of a safe text stand in at most `cells` columns."""
    if cells <= 0:
        return 0
    if text.isascii():
        return min(len(text), cells)
    # Few characters stand in no column of their own, and never more than their marks may be.
    ends: list[int] = []
    for reach in (cells + 1, (cells + 1) * (1 + MAX_MARKS)):
        ends = list(accumulate(map(_WIDTHS.__getitem__, text[:reach])))
        if ends[-1] > cells or len(ends) == len(text):
            break
    return bisect_right(ends, cells)


def pad(text: str, cells: int) -> str:
    """A safe text, clipped or filled up with spaces to exactly `cells` columns."""
    clipped = clip(text, cells)
    return clipped + " " * (cells - cell_width(clipped))


def safe_json(value: Any, indent: int | None = None) -> str:
    """JSON with equal values, in which everything dangerous is written as ``\\uXXXX``."""
    import json  # not needed to print a sentence

    return escape_json(json.dumps(value, ensure_ascii=False, indent=indent))


def escape_json(text: str) -> str:
    """A JSON text, perhaps somebody else's, in which nothing dangerous is left.

    What JSON itself does not ask to escape can only stand inside a string, where
    its escape means the same. Between values there is only white space; a
    carriage return there could overwrite the line, so it becomes a space.
    """
    if text.isascii() and text.isprintable():
        return text
    shown = text.translate(_JSON_ESCAPES)
    return shown if shown.isascii() else _bounded(shown, _escape_as_json)


# -- what is dangerous, and what is shown instead ----------------------------------------------

_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}

# Printable by their category, and yet nothing is seen of them: places to hide a text in.
_INVISIBLE = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x3164, 0xFFA0}
    | {*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0)}
)

# They only choose the colours of a picture (plain or not, the tone of a skin), and terminals
# disagree about the width of the picture that they follow.
_PICTURE_STYLE = frozenset({0xFE0E, 0xFE0F, *range(0x1F3FB, 0x1F400)})

# Vowels and finals of Hangul as macOS writes file names: they join the letter before them.
_JOINING_JAMO = frozenset({*range(0x1161, 0x1200), *range(0xD7B0, 0xD7C7), *range(0xD7CB, 0xD7FC)})


def _is_dangerous(code: int) -> bool:
    character = chr(code)
    if character.isprintable():
        return code in _INVISIBLE
    # Spaces other than the plain one are not "printable" to Python, and harm nobody.
    return _category(character) != "Zs"


def _category(character: str) -> str:
    import unicodedata  # plain text does not need it

    return unicodedata.category(character)


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return _SHORT.get(character) or f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_as_json(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


# -- tables that fill themselves, one entry for each character ever seen -----------------------


class _Escapes(dict[int, str]):
    """What each character becomes, for `str.translate`."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if code in _PICTURE_STYLE:
            shown = ""
        else:
            shown = _escape(character) if _is_dangerous(code) else character
        self[code] = shown
        return shown


class _JsonEscapes(dict[int, str]):
    """What each character of a JSON text becomes."""

    def __missing__(self, code: int) -> str:
        shown = _escape_as_json(chr(code)) if _is_dangerous(code) else chr(code)
        self[code] = shown
        return shown


class _Widths(dict[str, int]):
    """How many columns each character fills."""

    def __missing__(self, character: str) -> int:
        import unicodedata

        if _category(character) in ("Mn", "Me") or ord(character) in _JOINING_JAMO:
            width = 0
        else:
            width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        self[character] = width
        return width


_ESCAPES = _Escapes()
_ESCAPES_BUT: dict[str, _Escapes] = {}
_JSON_ESCAPES = _JsonEscapes({ord("\n"): "\n", ord("\t"): "\t", ord("\r"): " "})
_WIDTHS = _Widths()


def _escapes_but(keep: str) -> _Escapes:
    table = _ESCAPES_BUT.get(keep)
    if table is None:
        table = _ESCAPES_BUT[keep] = _Escapes({ord(character): character for character in keep})
    return table


def _bounded(text: str, escape: Any = None) -> str:
    """At most `MAX_MARKS` marks on a character: a pile of 500 would cover the lines around it.

    The rest is escaped one by one, or without an `escape` becomes one ellipsis.
    """
    widths = list(map(_WIDTHS.__getitem__, text))
    if 0 not in widths:
        return text
    kept: list[str] = []
    marks = 0
    for character, width in zip(text, widths, strict=True):
        marks = 0 if width else marks + 1
        if marks <= MAX_MARKS:
            kept.append(character)
        elif escape is not None:
            kept.append(escape(character))
        elif marks == MAX_MARKS + 1:
            kept.append(ELLIPSIS)
    return "".join(kept)
