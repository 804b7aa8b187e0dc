"""The words that databases are spoken to with, read from ``schema.sql`` and ``queries.sql``.

Both files hold one text for two databases; here each gets its own lines of it, and
its own way to write a value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache, lru_cache

_ONLY = re.compile(r"--only (\w+): ?(.*)")
_NAME = "-- name: "
#: Not the second colon of a cast.
_VALUE = re.compile(r"(?<!:):([a-z_]+[0-9]*)")


class Dialect(StrEnum):
    """The databases that are spoken to, as the files name them."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"


#: How each of them writes the number of the transaction at hand.
_CHANGED = {
    Dialect.SQLITE: ":changed",
    Dialect.POSTGRES: "pg_current_xact_id()::text::bigint",
}

#: The date of a new line, or that of the line above it where that is later and within the limit:
#: ``before`` is that line, which counts in the form that all of ours have.
DATE_IN_ORDER = """
    CASE WHEN substr(before.line, 1, 15) = :head AND substr(before.line, 39, 2) = :date_end
            AND substr(before.line, 16, 24) > :date AND substr(before.line, 16, 24) <= :latest
        THEN substr(before.line, 16, 24) ELSE :date END"""

#: The steps that a database of version n takes to version n + 1, by the files that hold them.
STEPS = ("schema.sql", "schema_2.sql")


@cache
def queries(dialect: Dialect) -> Mapping[str, str]:
    """Every named query in the words of one database."""
    found: dict[str, str] = {}
    for block in f"\n{_read('queries.sql')}".split("\n" + _NAME)[1:]:
        name, _, text = block.partition("\n")
        words = "\n".join(_lines(text, dialect))
        words = words.replace("{changed}", _CHANGED[dialect])
        found[name.strip()] = words.replace("{date_in_order}", DATE_IN_ORDER)
    return found


@cache
def step(number: int, dialect: Dialect) -> str:
    """The statements that bring version `number` to the next one."""
    return "\n".join(_lines(_read(STEPS[number]), dialect))


@lru_cache(maxsize=512)
def numbered(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """A query with ``$n`` for each ``:name``, as PostgreSQL itself has them; and the names."""
    names = tuple(dict.fromkeys(_VALUE.findall(sql)))
    places = {name: f"${number}" for number, name in enumerate(names, 1)}
    return _VALUE.sub(lambda found: places[found[1]], sql).encode(), names


def _lines(text: str, dialect: Dialect) -> list[str]:
    """Without comments, and without what is for another database."""
    kept = []
    for line in text.splitlines():
        if found := _ONLY.fullmatch(line.strip()):
            if found[1] == dialect:
                kept.append(found[2])
        elif line.strip() and not line.lstrip().startswith("--"):
            kept.append(line)
    return kept


def _read(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()
