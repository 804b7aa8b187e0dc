"""Sentences about unknown names, with the one that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable

#: So many are named where none is near.
_FEW = 8
#: How much of two labels must be the same; 1 is all of it.
_VERY_NEAR = 0.75
_NUMBER = "0123456789-_"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name; empty where none is near."""
    near = nearest(name, known)
    return f". Did you mean {near}?" if near else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """The one that was probably meant; empty where none is near."""
    import difflib  # only for a person who has mistyped something

    plain = {one.casefold(): one for one in sorted(known)}
    near = difflib.get_close_matches(name.casefold(), plain, 1)
    return plain[near[0]] if near else ""


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The sentence: ``unknown group 'bilds'. Did you mean builds?``, else which there are."""
    there = sorted(known)
    hint = did_you_mean(name, there)
    if not hint and 0 < len(there) <= _FEW:
        hint = f" (known: {', '.join(there)})"
    return f"unknown {what} {name[:60]!r}{hint}"


def is_mistyped(label: str, known: Iterable[str]) -> bool:
    """A new label is mistyped when it is nearly another one; `coder-2` is a sibling of `coder`."""
    import difflib

    from mam_core.sessions import LABEL_PREFIX

    def bare(name: str) -> str:
        return name.removeprefix(LABEL_PREFIX)

    siblings = {bare(one) for one in known}
    if bare(label).rstrip(_NUMBER) in {one.rstrip(_NUMBER) for one in siblings}:
        return False
    plain = {one.casefold() for one in siblings}
    return bool(difflib.get_close_matches(bare(label).casefold(), plain, 1, _VERY_NEAR))
