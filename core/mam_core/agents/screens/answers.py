"""From the operator's answer to the keys that give it."""

from __future__ import annotations

from collections.abc import Sequence

from mam_core.agents.screens.rules import Choice, Meaning

_YES = frozenset({"y", "yes"})
_NO = frozenset({"n", "no"})
_ALWAYS = frozenset({"a", "always"})


def keys_for(choices: Sequence[Choice], answer: str) -> tuple[str, ...] | None:
    """What is pressed for `answer`: y, n, a, a choice's number, or the beginning of its words.

    None when no choice, or more than one, could be meant: then nothing is pressed.
    """
    said = answer.strip().casefold()
    if not said:
        return None
    by_number = [choice for choice in choices if choice.number == said]
    named = [choice for choice in choices if choice.words.casefold() == said]
    begun = [choice for choice in choices if choice.words.casefold().startswith(said)]
    for words, meaning in ((_YES, Meaning.YES), (_NO, Meaning.NO), (_ALWAYS, Meaning.ALWAYS)):
        if said in words:
            begun = [choice for choice in choices if choice.means is meaning]
            named = []
    for found in (by_number, named, begun):
        if len(found) == 1:
            return found[0].keys
        if found:
            return None
    return None
