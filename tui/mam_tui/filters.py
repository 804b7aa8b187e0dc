"""The filter line: words, field terms, negation, patterns; read once, then asked for every row.

``status:error agent:codex -flaky "two words" /time.?out/ attempt:>1 age:<2h``. All terms must
hold; a comma inside a term means any of. What cannot be read is said with its place,
while it is typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from mam_core.bounded_pattern import LINE_CHARS, BadPattern, line_pattern
from mam_core.errors import MamError
from mam_core.records import Status
from mam_tui.faces import FACES
from mam_tui.moments import seconds
from mam_tui.rows import Row

Holds = Callable[[Row, float], bool]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_MOST_CHARS = 1000
#: Of what a pattern looks at: the prompt's beginning, and the names.
_MOST_OF_A_ROW = 2 * LINE_CHARS


class BadFilter(MamError):
    """A filter that cannot be read."""

    title = "Filter"


class Test(NamedTuple):
    """One term: what must hold for a row at a moment."""

    holds: Holds
    follows_time: bool = False  #: what holds now may not hold later, with no news at all


class Filter(NamedTuple):
    """A filter as it was typed, and what it asks of a row."""

    text: str = ""
    tests: tuple[Test, ...] = ()

    def fits(self, row: Row, now: float) -> bool:
        return not self.tests or all(test.holds(row, now) for test in self.tests)

    @property
    def follows_time(self) -> bool:
        return any(test.follows_time for test in self.tests)


@lru_cache(maxsize=64)
def parse(text: str) -> Filter:
    """Raises `BadFilter` with one sentence."""
    if len(text) > _MOST_CHARS:
        raise BadFilter(f"a filter has at most {_MOST_CHARS} characters")
    return Filter(text, tuple(map(_test, _terms(text))))


def with_or_without(text: str, term: str) -> str:
    """The filter with this term; where it has it already, without."""
    terms = list(_terms(text))
    if term not in terms:
        return f"{text} {term}".strip()
    return " ".join(one for one in terms if one != term)


def _terms(text: str) -> Iterator[str]:
    """Parted at spaces that stand in no quotes and in no pattern."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        end = at
        closing = ""
        while end < len(text) and (closing or not text[end].isspace()):
            if closing:
                closing = "" if text[end] == closing else closing
            elif text[end] == '"':
                closing = '"'
            elif text[end] == "/" and text[at:end] in ("", "-"):
                closing = "/"
            end += 1
        if closing:
            raise BadFilter(f"{text[at:end]} does not end: a {closing} is missing")
        yield text[at:end]
        at = end


def _test(term: str) -> Test:
    if term.startswith("-") and len(term) > 1:
        return _negated(_test(term[1:]))
    if len(term) > 1 and term.startswith("/") and term.endswith("/"):
        return _pattern(term[1:-1])
    name, colon, value = term.partition(":")
    if not colon or name not in _FIELDS or name.startswith('"'):
        return _word(term.replace('"', ""))
    value = value.replace('"', "")
    if not value:
        raise BadFilter(f"{name}: what? for example {name}:{_FIELDS[name]}")
    if name in _NUMBERS:
        return _number(name, value)
    wanted = tuple(part for part in value.lower().split(",") if part)
    return _field(name, wanted)


def _negated(test: Test) -> Test:
    return Test(lambda row, now: not test.holds(row, now), test.follows_time)


def _word(text: str) -> Test:
    wanted = text.lower()
    return Test(lambda row, _: wanted in _haystack(row))


def _pattern(text: str) -> Test:
    """Asked of every row at each key that is typed, so of a bounded cost on bounded text."""
    try:
        pattern = line_pattern(text, re.IGNORECASE)
    except BadPattern as problem:
        raise BadFilter(problem.message) from None
    return Test(lambda row, _: pattern.search(_haystack(row)[:_MOST_OF_A_ROW]) is not None)


def _haystack(row: Row) -> str:
    summary = row.summary
    if summary is None:
        return f"{row.job_id} {row.trouble}".lower()
    parts = (
        row.job_id,
        summary.head,
        summary.agent,
        summary.agent_session,
        summary.group or "",
        row.live.detail,
    )
    return " ".join(parts).lower()


# -- fields ------------------------------------------------------------------------------------

#: Every field, with an example.
_FIELDS = {
    "status": "error",
    "state": "waiting",
    "agent": "codex",
    "session": "tmux:claude",
    "group": "nightly",
    "node": "host1",
    "id": "a1b2",
    "reason": "timeout",
    "needs": "any",
    "prompt": "refactor",
    "attempt": ">1",
    "priority": ">0",
    "age": "<2h",
    "cost": ">1.5",
}
#: The term for whatever needs a person.
NEEDING = "needs:any"
_NUMBERS = ("attempt", "priority", "age", "cost")
_UNREADABLE = "unreadable"
FIELDS = tuple(_FIELDS)


def _field(name: str, wanted: tuple[str, ...]) -> Test:
    if name == "state":
        states = _begun_by(name, wanted, FACES)
        return Test(lambda row, _: row.word in states)
    if name == "status":
        statuses = _begun_by(name, wanted, [*map(str, Status), _UNREADABLE])
        return Test(lambda row, _: _status(row) in statuses)
    if name == "needs":
        return Test(lambda row, _: any(_needs(row, one) for one in wanted))
    if name == "node":
        return Test(lambda row, _: any(_is_on(row, one) for one in wanted))
    return Test(lambda row, _: any(one in _text(row, name) for one in wanted))


def _begun_by(name: str, wanted: Iterable[str], known: Iterable[str]) -> frozenset[str]:
    """Words by their beginnings, as they are typed; a whole word is only itself."""
    found: set[str] = set()
    for one in wanted:
        fitting = {one} & set(known) or {word for word in known if word.startswith(one)}
        if not fitting:
            raise BadFilter(f"{one} is no {name}: {', '.join(known)}")
        found |= fitting
    return frozenset(found)


def _status(row: Row) -> str:
    return str(row.summary.status) if row.summary else _UNREADABLE


def _needs(row: Row, wanted: str) -> bool:
    need = row.live.need
    return bool(need) and (wanted == "any" or wanted in need)


def _is_on(row: Row, host: str) -> bool:
    """Of its last attempt: by the whole name, or by that before its domain."""
    node = str(row.summary.node or "").lower() if row.summary else ""
    return node == host or node.startswith(f"{host}.")


def _text(row: Row, name: str) -> str:
    summary = row.summary
    if name == "id" or summary is None:
        return row.job_id.lower()
    value = {
        "agent": summary.agent,
        "session": summary.agent_session,
        "group": summary.group,
        "reason": summary.reason,
        "prompt": summary.head,
    }[name]
    return str(value or "").lower()


def _number(name: str, value: str) -> Test:
    relation, figure = (value[0], value[1:]) if value[0] in "<>" else ("=", value)
    found = _SPAN.fullmatch(figure)
    if found is None or (found[2] and name != "age"):
        raise BadFilter(f"{name}:{value} is no number; for example {name}:{_FIELDS[name]}")
    limit = float(found[1]) * _UNITS.get(found[2], 1)

    def holds(row: Row, now: float) -> bool:
        known = _figure(row, name, now)
        if known is None:
            return False
        if relation == "<":
            return known < limit
        return known > limit if relation == ">" else known == limit

    return Test(holds, follows_time=name == "age")


def _figure(row: Row, name: str, now: float) -> float | None:
    summary = row.summary
    if summary is None:
        return None
    if name == "attempt":
        return summary.attempt
    if name == "priority":
        return summary.priority
    if name == "cost":
        return row.live.cost
    created = seconds(summary.created_at)
    return None if created is None else now - created
