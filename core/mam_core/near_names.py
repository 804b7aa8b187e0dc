"""Sentences about unknown names, with the one that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable

#: So many are named where none is near.
_FEW = 8


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name; empty where none is near."""
    import difflib  # only for a person who has mistyped something

    near = difflib.get_close_matches(name, sorted(known), 1)
    return f". Did you mean {near[0]}?" if near else ""


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The sentence: ``unknown group 'bilds'. Did you mean builds?``, else which there are."""
    there = sorted(known)
    hint = did_you_mean(name, there)
    if not hint and 0 < len(there) <= _FEW:
        hint = f" (known: {', '.join(there)})"
    return f"unknown {what} {name[:60]!r}{hint}"
