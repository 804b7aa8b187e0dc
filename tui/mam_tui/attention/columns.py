"""How a need looks: its face, and the columns of the list. Foreign text leaves here harmless."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from mam_core.operations.attention import Need, NeedKind
from mam_core.safe_text import cell_width, one_line
from mam_tui.faces import Face
from mam_tui.laying import Column, Columns, Look
from mam_tui.moments import span, whole_minutes

_MINUTE = 60.0

NEED_FACES: Mapping[NeedKind, Face] = {
    kind: Face(str(kind), glyph, plain, style, rank)
    for rank, (kind, glyph, plain, style) in enumerate(
        (
            (NeedKind.PERMISSION, "◆", "?", "waiting"),
            (NeedKind.QUESTION, "◇", "?", "waiting"),
            (NeedKind.LOST, "✗", "X", "error"),
            (NeedKind.VALIDATION, "✖", "x", "error"),
            (NeedKind.BUDGET, "$", "$", "warning"),
            (NeedKind.RETRIES, "✖", "x", "error"),
            (NeedKind.STUCK, "⊘", "#", "warning"),
            (NeedKind.UNSERVED, "○", "-", "warning"),
            (NeedKind.QUOTA, "◌", "~", "idle"),
        )
    )
}


class Piece(NamedTuple):
    """One line of the list: the first of a need, or one more with the rest of its words."""

    need: Need
    words: str  #: as far as they stand on this line
    is_more: bool = False


def _in_first(text: Callable[[Piece, Look], str]) -> Callable[[Piece, Look], str]:
    return lambda piece, look: "" if piece.is_more else text(piece, look)


def _kind(piece: Piece, look: Look) -> str:
    face = NEED_FACES[piece.need.kind]
    return f"{face.ascii if look.ascii else face.glyph} {face.word}"


def _age(piece: Piece, look: Look) -> str:
    """In seconds only for a minute: what has waited longer is not counted by the second."""
    if piece.need.since is None:
        return "?"
    ago = max(0.0, look.now - piece.need.since)
    return span(ago) if ago < _MINUTE else whole_minutes(ago)


_ALL: tuple[Column[Piece], ...] = (
    Column("state", "NEEDS", 12, 100, _in_first(_kind), lambda piece: 0),
    Column("age", "AGE", 5, 90, _in_first(_age), lambda piece: 0, right=True, by_clock=True),
    Column(
        "id",
        "JOB",
        8,
        85,
        _in_first(lambda piece, _: one_line(piece.need.job_id)),
        lambda piece: 0,
    ),
    Column(
        "session",
        "SESSION",
        14,
        70,
        _in_first(lambda piece, _: one_line(piece.need.session)),
        lambda piece: 0,
    ),
    Column(
        "agent",
        "AGENT",
        12,
        50,
        _in_first(lambda piece, _: one_line(piece.need.agent)),
        lambda piece: 0,
    ),
    Column("words", "IN ITS OWN WORDS", 20, 95, lambda piece, _: piece.words, lambda piece: 0),
)
COLUMNS: Mapping[str, Column[Piece]] = {column.name: column for column in _ALL}
NEED_COLUMNS = Columns(COLUMNS, last="words")


def room_for(kinds: Mapping[str, int]) -> int:
    """How wide the column of kinds must be for these; a glyph stands before each."""
    return max((2 + cell_width(kind) for kind in kinds), default=COLUMNS["state"].width)
