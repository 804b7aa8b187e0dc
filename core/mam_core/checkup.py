"""What a store says about its own health, for whoever asks before something breaks."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple


class Weight(StrEnum):
    """How much a sign matters."""

    FINE = "fine"
    NOTE = "note"  #: good to know
    WARNING = "warning"  #: works, and should not stay so
    PROBLEM = "problem"  #: does not do what it should


class Cure(NamedTuple):
    """What can be done about it from here."""

    words: str  #: as one would ask for it
    act: Callable[[], str]  #: answers what was done, as a sentence


class Sign(NamedTuple):
    """One thing that was looked at. `words` say what is so and, if it should not be, what to do."""

    what: str
    weight: Weight
    words: str
    cure: Cure | None = None


def fine(what: str, words: str) -> Sign:
    return Sign(what, Weight.FINE, words)


def version_sign(found: int, ours: int) -> Sign:
    """The tables against what this `mam` knows."""
    if found == 0:
        return Sign("schema", Weight.NOTE, "there are no tables yet: the first job makes them")
    if found > ours:
        words = f"version {found} was made by a newer mam, and this one knows {ours}: update mam"
        return Sign("schema", Weight.PROBLEM, words)
    if found < ours:
        words = f"version {found}: whoever writes first with the right to brings it to {ours}"
        return Sign("schema", Weight.NOTE, words)
    return fine("schema", f"version {found}")
