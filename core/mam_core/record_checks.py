"""How the keys of a record are checked when it is read.

A `Kind` says what a key may hold, in words for people and as exact types for
speed: a claim reads a record of forty keys, and most of them are settled by
one look at the type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mam_core.errors import UnreadableRecord


class Kind(NamedTuple):
    """What a key may hold; `convert` answers the value as we keep it, or raises TypeError."""

    words: str
    types: frozenset[type]
    convert: Callable[[Any], Any] | None = None

    def or_null(self) -> Kind:
        return self._replace(types=self.types | {type(None)})


def _any_whole(value: int) -> int:
    """As large as an index or a database can hold: one odd record must not stop the others."""
    if not -(2**62) <= value <= 2**62:
        raise TypeError
    return value


def _not_negative(value: int) -> int:
    if not 0 <= value <= 2**62:
        raise TypeError
    return value


def _positive(value: float) -> float:
    if not 0 < value < 1e12:
        raise TypeError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    for item in value:
        if not isinstance(item, str):
            raise TypeError
    return tuple(value)


TEXT = Kind("a text", frozenset({str}))
WHOLE = Kind("a whole number of 64 bits", frozenset({int}), _any_whole)
COUNT = Kind("a whole number of 64 bits, not negative", frozenset({int}), _not_negative)
NUMBER = Kind("a number", frozenset({int, float}))
POSITIVE = Kind("a positive number", frozenset({int, float}), _positive)
FLAG = Kind("true or false", frozenset({bool}))
TEXTS = Kind("a list of texts", frozenset({list, tuple}), _texts)


def checked(
    data: Mapping[str, Any], kinds: Mapping[str, Kind]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys that we know, as we keep them, and all others as they are."""
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in data.items():
        if name not in kinds:
            extra[name] = value
            continue
        words, types, convert = kinds[name]
        if type(value) not in types and not _is_a(value, types):
            raise UnreadableRecord(f"its {name} is not {words}")
        if convert is not None and value is not None:
            try:
                value = convert(value)
            except TypeError:
                raise UnreadableRecord(f"its {name} is not {words}") from None
        known[name] = value
    return known, extra


def _is_a(value: Any, types: frozenset[type]) -> bool:
    """A subclass will do (our enums are texts), except that true and false are no numbers."""
    return not isinstance(value, bool) and isinstance(value, tuple(types))
