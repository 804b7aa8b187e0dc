"""Damaged copies of good texts: as many as are asked for, and each can be made again.

A mutant is a function of its label alone (``records/17``), so whoever meets a
failure repeats it with `mutant("records", 17, corpus)`. Half of them are bytes that
went wrong; the other half is sound JSON that says something odd, since that gets further in.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

#: Another number gives other mutants; a release is run with several.
SEED = os.environ.get("MAM_FUZZ_SEED", "2026")

#: What a file may hold that nobody would write.
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**200, -(2**64), 0.5, -0.0, 1e308, 5e-324),
    *("", " ", "x" * 5000, "\x00", "\ud800", "\x1b]0;x\x07", "\u202e", "[/]", "[@click=app.quit]"),
    *("../../x", "/", ".", "~", "a/b", "%s", "{0}", "-1", "NaN", "pending", "completed", "error"),
    *("2026-06-19T09:00:00Z", "9999-99-99T99:99:99Z", "0000-01-01T00:00:00Z", "+8h", "tmux:a"),
    *([], {}, [[]], [None], {"": None}, ["x"] * 300, {"a": {"b": {"c": []}}}, [{}], ["\ud800"]),
)
_TOKENS = (
    *(b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b'"', b"'", b"{", b"}", b"[", b"]", b",", b":"),
    *(b"NaN", b"Infinity", b"1e999", b"-1e999", b"null", b"true", b"-", b"\\", b"\\u0000", b"\n"),
    *(b"\\ud800", b"\r", b"=", b"#", b'"""', b"\x1b[2J", b"\xc2\x9b", b"9" * 5000, b"[" * 3000),
    *(b'{"a":' * 2000, b"\xe2\x80\xae", b"%", b"/", b"..", b"0x1", b"_", b"inf", b"1979-05-27"),
)


class Mutant(NamedTuple):
    """One of them, and the name under which it can be had again."""

    label: str
    data: bytes


def mutants(kind: str, corpus: Sequence[bytes], count: int) -> Iterator[Mutant]:
    for number in range(count):
        yield mutant(kind, number, corpus)


def mutant(kind: str, number: int, corpus: Sequence[bytes]) -> Mutant:
    label = f"{kind}/{number}"
    chance = random.Random(f"{SEED}/{label}")
    data = chance.choice(corpus)
    if chance.random() < 0.5:
        data = _said_differently(data, chance)
    else:
        for _ in range(chance.randint(1, 4)):
            data = chance.choice(_DAMAGES)(data, chance)
    return Mutant(f"{label} (seed {SEED})", data)


def batches(found: Iterator[Mutant], size: int) -> Iterator[list[Mutant]]:
    """So many at a time."""
    while batch := list(islice(found, size)):
        yield batch


def pieces(data: bytes, chance: random.Random, longest: int = 60) -> Iterator[bytes]:
    """As it may come out of a pipe."""
    at = 0
    while at < len(data):
        step = chance.randint(1, longest)
        yield data[at : at + step]
        at += step


# -- bytes that went wrong -------------------------------------------------------------------


def _flip(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return b"\0"
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def _cut_out(data: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(data))
    return data[:at] + data[at + chance.randint(1, 40) :]


def _torn(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randint(0, len(data))]


def _repeated(data: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(data))
    return data[:at] + data[at : at + chance.randint(1, 200)] + data[at:]


def _put_in(data: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(data))
    return data[:at] + chance.choice(_TOKENS) + data[at:]


def _swapped(data: bytes, chance: random.Random) -> bytes:
    first, second = sorted(chance.randint(0, len(data)) for _ in range(2))
    return data[second:] + data[first:second] + data[:first]


_DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flip, _cut_out, _torn, _repeated, _put_in, _put_in, _swapped),
)


# -- sound JSON that says something odd ------------------------------------------------------


def _said_differently(data: bytes, chance: random.Random) -> bytes:
    """One or two values exchanged, gone or under another name; what is no JSON is damaged."""
    try:
        whole = json.loads(data)
    except ValueError:
        return chance.choice(_DAMAGES)(data, chance)
    for _ in range(chance.randint(1, 2)):
        whole = _changed(whole, chance)
    return json.dumps(whole).encode()


def _changed(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        throw = chance.random()
        if throw < 0.1:
            return {name: one for name, one in value.items() if name != key}
        if throw < 0.2:
            odd = chance.choice([one for one in ODD_VALUES if isinstance(one, str)])
            return {odd if name == key else name: one for name, one in value.items()}
        return {**value, key: _changed(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.7:
        at = chance.randrange(len(value))
        return [*value[:at], _changed(value[at], chance), *value[at + 1 :]]
    return chance.choice(ODD_VALUES)
