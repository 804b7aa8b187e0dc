"""Hostile texts that no list of examples has: pieces of all of them in any order, cut anywhere."""

from __future__ import annotations

import random

from tests.console.hostile.payloads import CONTROLS, MARK, MARKUP, SEQUENCES, SHAPES

_ATOMS = [*MARKUP.values(), *SEQUENCES.values(), *CONTROLS.values(), *SHAPES.values()]


def hostile_text(number: int) -> str:
    """The same for the same number."""
    chance = random.Random(number)
    text = "".join(chance.choice(_ATOMS) for _ in range(chance.randint(1, 4)))
    first, second = sorted(chance.randint(0, len(text)) for _ in range(2))
    whole = MARK + text[first:second] + chance.choice(_ATOMS)
    return whole.encode("utf-8", "replace").decode()  # half a character is refused at the door
