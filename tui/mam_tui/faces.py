"""How each state looks: a glyph, a word and a colour, any one of which is enough.

The word is what is read over a telephone, the glyph what is found at a glance,
the colour a help for those who see it. Nothing is told by colour alone.
"""

from __future__ import annotations

from typing import NamedTuple


class Face(NamedTuple):
    """One state as it is shown; a lower rank needs a person sooner."""

    word: str
    glyph: str
    ascii: str
    style: str  #: the name of a component class, so that the theme decides
    rank: int


FACES = {
    face.word: face
    for face in (
        Face("waiting", "◆", "?", "waiting", 0),
        Face("lost", "✗", "X", "error", 1),
        Face("stale", "◌", "~", "warning", 2),
        Face("unreadable", "‼", "E", "error", 3),
        Face("cancelling", "◍", "c", "warning", 4),
        Face("working", "●", "*", "working", 5),
        Face("starting", "◔", "o", "working", 6),
        Face("finishing", "◕", "O", "working", 7),
        Face("idle", "○", "-", "idle", 8),
        Face("running", "▶", ">", "working", 9),
        Face("blocked", "⊘", "#", "blocked", 10),
        Face("queued", "·", ".", "queued", 11),
        Face("error", "✖", "x", "error", 12),
        Face("completed", "✔", "+", "done", 13),
        Face("cancelled", "⊝", "/", "idle", 14),
    )
}

#: For a word that a newer core may use.
UNKNOWN = Face("unknown", "•", "?", "idle", 15)

#: Component classes that the widgets which show states must offer.
STYLES = ("waiting", "error", "warning", "working", "idle", "blocked", "queued", "done")


def face_of(word: str) -> Face:
    return FACES.get(word) or UNKNOWN._replace(word=word)
