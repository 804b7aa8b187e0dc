"""What a program wrote to a terminal, taken apart as a terminal takes it apart (ECMA-48).

Plain text, single controls and sequences, each under a name that says what it is and without
what varies in harmless ways: so that a whole session is a small set of kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What a terminal makes of it."""

    TEXT = "text"
    CONTROL = "control"  #: C0, as one character, or C1, as one code point
    ESC = "ESC"
    CSI = "CSI"
    STRING = "string"  #: OSC, DCS, SOS, PM, APC: up to their end
    BROKEN = "broken"  #: the beginning of a sequence that is none


class Piece(NamedTuple):
    """One of them; `text` is what was written, whole."""

    kind: Kind
    text: str

    @property
    def name(self) -> str:
        """The kind of a sequence: of a CSI everything but its numbers, except for the modes."""
        if self.kind is Kind.CSI and self.text[-1] not in "hl":
            return "CSI " + re.sub(r"[0-9;:]+", "", self.text[2:])
        if self.kind is Kind.STRING:
            return f"{_STRINGS[self.text[1]]} {self.text[2:].partition(';')[0][:8]}"
        return f"{self.kind} {repr(self.text) if self.kind is Kind.CONTROL else self.text[2:]}"


_STRINGS = {"]": "OSC", "P": "DCS", "X": "SOS", "^": "PM", "_": "APC"}
_PIECES = re.compile(
    r"(?P<csi>\x1b\[[0-?]*[ -/]*[@-~])"
    r"|(?P<string>\x1b[\]PX^_][^\x1b\x07\x9c]*(?:\x1b\\|\x07|\x9c))"
    r"|(?P<esc>\x1b[ -/]*[0-OQ-WYZ\\`-~])"
    r"|(?P<broken>\x1b)"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])"
    r"|(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
)
_KINDS = {
    "csi": Kind.CSI,
    "string": Kind.STRING,
    "esc": Kind.ESC,
    "broken": Kind.BROKEN,
    "control": Kind.CONTROL,
    "text": Kind.TEXT,
}


def pieces(written: bytes) -> Iterator[Piece]:
    """In order; bytes that are no UTF-8 come out as lone surrogates, which no text has."""
    for found in _PIECES.finditer(written.decode("utf-8", "surrogateescape")):
        assert found.lastgroup is not None
        yield Piece(_KINDS[found.lastgroup], found[0])


def modes_left_on(written: bytes) -> set[str]:
    """Private modes that were switched on and never off again: ``?1049``, ``?1000`` …"""
    on: set[str] = set()
    for piece in pieces(written):
        if piece.kind is Kind.CSI and piece.text[2:3] == "?" and piece.text[-1] in "hl":
            names = {f"?{number}" for number in piece.text[3:-1].split(";")}
            on = on | names if piece.text.endswith("h") else on - names
    return on
