"""Regular expressions whose cost is bounded, since they run on foreign text many times a second.

A pattern is matched from the start of one line that was cut at `LINE_CHARS`. What it
may repeat, leave out or choose between is counted when it is read: the product of all
choices is the number of ways that a match can be tried, and too large a product is
refused. So a file of rules that a person wrote cannot make a worker stand still, nor a
filter that an operator types the console.
"""

from __future__ import annotations

import re

from mam_core.errors import MamError

#: Longer lines are cut: no screen rule looks so far to the right.
LINE_CHARS = 240
_PATTERN_CHARS = 200
#: Two repetitions without end and a few small choices: about 10 ms at the very worst.
_MOST_WAYS = 16 * LINE_CHARS**2

_COUNT = re.compile(r"\{(\d*)(,?)(\d*)\}")


class BadPattern(MamError):
    """A pattern cannot be used."""

    title = "Bad pattern"


def line_pattern(text: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Raises `BadPattern` for one that is no pattern, or that could cost too much."""
    if len(text) > _PATTERN_CHARS:
        raise BadPattern(f"a pattern has at most {_PATTERN_CHARS} characters: {text[:40]}…")
    try:
        compiled = re.compile(text, flags)
    except (re.error, OverflowError, RecursionError) as problem:
        raise BadPattern(f"{text!r} is no regular expression: {problem}") from None
    if _ways(text) > _MOST_WAYS:
        words = "repeats too much: at most two of '*' and '+', and few of '?' and '|'"
        raise BadPattern(f"{text!r} {words}")
    return compiled


def _ways(text: str) -> int:
    """An upper bound of the ways in which `text` can be tried at one place of a line."""
    ways = 1
    outer: list[int] = []  # the branches of the groups that this one stands in
    branches = 1
    after_group = False
    at = 0
    while at < len(text):
        sign = text[at]
        step = 1
        was_group, after_group = after_group, False
        if sign == "\\":
            if text[at + 1].isdecimal() and text[at + 1] != "0":
                raise BadPattern(f"{text!r} refers back to a group, which can cost too much")
            step = 2
        elif sign == "[":
            step = _class_end(text, at) - at
        elif sign == "(":
            if text.startswith("(?P=", at):
                raise BadPattern(f"{text!r} refers back to a group, which can cost too much")
            outer.append(branches)
            branches = 1
            if text.startswith("(?", at):
                step = 2  # the question mark is no quantifier
        elif sign == ")":
            ways *= branches
            branches = outer.pop()
            after_group = True
        elif sign == "|":
            branches += 1
        elif sign in "*+?" or (sign == "{" and _COUNT.match(text, at)):
            least, most, step = _quantifier(text, at)
            if most > 1 and was_group:
                raise BadPattern(f"{text!r} repeats a group, which can cost without end")
            ways *= most - least + 1
        at += step
    return ways * branches


def _quantifier(text: str, at: int) -> tuple[int, int, int]:
    """How often the one at `at` repeats at least and at most, and how long it is."""
    sign = text[at]
    if sign in "*+?":
        least, most, length = 0, 1 if sign == "?" else LINE_CHARS, 1
    else:
        found = _COUNT.match(text, at)
        assert found is not None
        low, comma, high = found.groups()
        least = int(low or 0)
        most = int(high or LINE_CHARS) if comma else least
        length = found.end() - at
    if text[at + length : at + length + 1] in ("?", "+"):  # lazy or greedy: it costs the same
        length += 1
    return least, most, length


def _class_end(text: str, at: int) -> int:
    end = at + 1
    if text[end : end + 1] == "^":
        end += 1
    if text[end : end + 1] == "]":
        end += 1
    while text[end] != "]":
        end += 2 if text[end] == "\\" else 1
    return end + 1
